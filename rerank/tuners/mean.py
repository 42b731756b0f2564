"""The mean of three tuners: each errs in its own way, and their mean less than any of them on other sentences.

kbmira takes its steps by margins, expected follows a gradient, mert sees the metric itself. The weights of each are
first brought to scores of one spread, so that none counts more than another.

What the start weights know was learned from sentences, too. So the mean is drawn to them, in the features that they
know, and the more the fewer sentences there are: they count as a number of sentences (`docs/tuning.md`).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from features.arrays import Array
from rerank.tuners import expected, kbmira, mert
from rerank.tuners.problem import MOST_TIMES, Problem, Tuned, check_numbers

THREADS = 2
MEAN = "mean"
MEMBERS = ("kbmira", "expected", "mert")
"""The tuners that count alike; without mert where features are sparse."""
ALL_KNOWN, SOME_NEW = 150, 30
"""As how many sentences the start weights count where none of them is 0, and where some features are new."""
SEEDS = 2**32
"""Seeds begin again at 0 here."""
CLIMBS_A_RUN = 4
"""There is a run of kbmira for so many climbs of mert, as there is where these tuners are named."""


@dataclass(frozen=True)
class MeanSettings:
    """Settings; those of the three are their own.

    Attributes:
        name: of the tuner.
        climbs: of mert, each from another random point, with a run of kbmira, each in another order of the sentences,
            for every four; their means count as one of the three each.
        seed: the next one has other climbs and runs.
    """

    name: ClassVar[str] = "mean"
    climbs: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, whole=True, most=MOST_TIMES, climbs=self.climbs)
        check_numbers(0, whole=True, seed=self.seed)

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"{self.name}|climbs:{self.climbs}|start:{ALL_KNOWN},{SOME_NEW}|seed:{self.seed}"


@dataclass(frozen=True)
class AutoSettings(MeanSettings):
    """The same, for `rerank.tuning.auto`, which looks whether something else is surely better.

    It has as many climbs and runs as mert and kbmira where these are named, so that it looks at what they would reach.
    """

    name: ClassVar[str] = "auto"
    climbs: int = 20


def tune(problem: Problem, settings: MeanSettings) -> Tuned:
    """Tune weights."""
    weights = several(problem, settings)[MEAN]
    return Tuned(weights, problem.measure(weights))


def names(problem: Problem) -> tuple[str, ...]:
    """Return what `several` has weights of."""
    points = () if problem.candidates.space.sparse else ("mert",)
    return ("kbmira", "expected", "kbmira and expected", *points, MEAN)


def several(problem: Problem, settings: MeanSettings) -> dict[str, Array]:
    """Return the (size,) weights of each of the tuners by its name, of kbmira and expected together, and of all.

    Those of all alone are drawn to the start. mert, which tunes no sparse features, has no part where there are some.
    """
    runs, climbs = max(1, settings.climbs // CLIMBS_A_RUN), 0 if problem.candidates.space.sparse else settings.climbs
    tasks: list[Callable[[], Tuned]] = [
        partial(expected.tune, problem, expected.ExpectedSettings()),
        *(partial(kbmira.tune, problem, kbmira.KbmiraSettings(seed=seed)) for seed in _seeds(settings.seed, runs)),
        *(partial(mert.tune, problem, mert.MertSettings(seed=seed)) for seed in _seeds(settings.seed, climbs)),
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        gradient, *others = (tuned.weights for tuned in pool.map(lambda task: task(), tasks))
    margins = average(problem, others[:runs])
    weights = {"kbmira": margins, "expected": gradient, "kbmira and expected": average(problem, [margins, gradient])}
    if climbs:
        weights["mert"] = average(problem, others[runs:])
    members = [weights[name] for name in MEMBERS if name in weights]
    weights[MEAN] = drawn_to_start(problem, average(problem, members), part_of_start(problem))
    return weights


def _seeds(seed: int, count: int) -> list[int]:
    """Return seeds of which the next seed has none."""
    return [((seed - 1) * count + 1 + number) % SEEDS for number in range(count)]


def average(problem: Problem, members: list[Array]) -> Array:
    """Return the (size,) mean of (size,) weights, in units of the spread of their scores."""
    mean: Array = np.mean([weights / (_spread(problem, weights) or 1.0) for weights in members], axis=0)  # (size,)
    return mean


def part_of_start(problem: Problem) -> float:
    """Return which part the start weights have: they count as some sentences beside those of the problem."""
    count = ALL_KNOWN if problem.start.all() else SOME_NEW
    return count / (count + len(problem.candidates.sentences))


def drawn_to_start(problem: Problem, weights: Array, part: float) -> Array:
    """Return (size,) weights of which those that have a start weight are a mean with it, in which it has a part.

    Both count by the spread of what they say with these features, and their mean is brought to that of the weights.
    """
    known = problem.start != 0  # (size,)
    tuned, start = weights * known, problem.start
    spread, spread_of_start = _spread(problem, tuned), _spread(problem, start)
    if not (spread and spread_of_start):
        return weights
    mixed = (1 - part) * tuned + part * start * spread / spread_of_start  # (size,)
    return np.where(known, mixed, weights)  # (size,)


def _spread(problem: Problem, weights: Array) -> float:
    """Return the standard deviation of scores within a sentence."""
    return problem.candidates.spread_of(problem.candidates.scores(weights))
