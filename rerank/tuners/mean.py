"""The mean of three tuners: each errs in its own way, and their mean less than any of them on other sentences.

kbmira takes its steps by margins, expected follows a gradient, mert sees the metric itself. The weights of each are
first brought to scores of one spread, so that none counts more than another.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from features.arrays import Array
from rerank.tuners import expected, kbmira, mert
from rerank.tuners.problem import MOST_TIMES, Problem, Tuned, check_numbers

THREADS = 2
MEAN = "mean"
SEEDS = 2**32
"""Seeds of climbs begin again at 0 here."""


@dataclass(frozen=True)
class MeanSettings:
    """Settings; those of the three are their own.

    Attributes:
        climbs: of mert, each from another random point; their mean counts as one of the three.
        seed: of kbmira; the next one has other climbs.
    """

    climbs: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, whole=True, most=MOST_TIMES, climbs=self.climbs)
        check_numbers(0, whole=True, seed=self.seed)

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"mean|climbs:{self.climbs}|seed:{self.seed}"


class AutoSettings(MeanSettings):
    """The same, for `rerank.tuning.auto`, which looks whether something else is surely better."""

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"auto|climbs:{self.climbs}|seed:{self.seed}"


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

    mert, which does not tune sparse features, has no part where there are some.
    """
    climbs = 0 if problem.candidates.space.sparse else settings.climbs
    seeds = [((settings.seed - 1) * climbs + 1 + number) % SEEDS for number in range(climbs)]
    tasks: list[Callable[[], Tuned]] = [
        partial(kbmira.tune, problem, kbmira.KbmiraSettings(seed=settings.seed)),
        partial(expected.tune, problem, expected.ExpectedSettings()),
        *(partial(mert.tune, problem, mert.MertSettings(seed=seed)) for seed in seeds),
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        margins, gradient, *points = (tuned.weights for tuned in pool.map(lambda task: task(), tasks))
    weights = {"kbmira": margins, "expected": gradient, "kbmira and expected": _mean(problem, [margins, gradient])}
    if points:
        weights["mert"] = _mean(problem, points)
    weights[MEAN] = _mean(problem, [weights[name] for name in ("kbmira", "expected", "mert") if name in weights])
    return weights


def _mean(problem: Problem, members: list[Array]) -> Array:
    """(size,) the mean of (size,) weights, in units of the spread of their scores."""
    mean: Array = np.mean([weights / _spread(problem, weights) for weights in members], axis=0)  # (size,)
    return mean


def _spread(problem: Problem, weights: Array) -> float:
    """Return the standard deviation of scores within a sentence; 1 where they do not vary."""
    scores = replace(problem.candidates, dense=problem.candidates.scores(weights)[:, None])  # (N, 1)
    return float(replace(problem, candidates=scores).spread()[0]) or 1.0
