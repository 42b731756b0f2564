"""Mean of three tuners. They make different errors, so their mean is better on other sentences than each of them.

kbmira optimizes margins, expected follows a gradient, and mert optimizes the metric directly. The weights of each tuner
are first scaled so that the spread of the scores is equal, which gives each tuner equal influence.

The mean is then interpolated with the initial weights, for features that have one, because these were tuned as well.
The initial weights count as a fixed number of sentences, so their part is larger if the tuning set is small
(`docs/explanation/tuning.md`).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from features.arrays import Array
from rerank.tuners import expected, kbmira, mert
from rerank.tuners.problem import MAX_COUNT, Problem, Tuned, check_numbers

THREADS = 2
MEAN = "mean"
MEMBERS = ("kbmira", "expected", "mert")
"""Tuners with equal influence on the mean. mert is left out if there are sparse features."""
ALL_KNOWN, SOME_NEW = 150, 30
"""Number of sentences that the initial weights count as: if none of them is 0, and if some are 0 (new features)."""
SEEDS = 2**32
"""Seeds wrap around to 0 at this value."""
CLIMBS_PER_RUN = 4
"""Climbs of mert per run of kbmira, the ratio of the default `runs` of these two tuners."""


@dataclass(frozen=True)
class MeanSettings:
    """Settings of the tuner `mean`. The three tuners have their default settings.

    Attributes:
        name: name of the tuner.
        climbs: number of climbs of mert, each from another random point. For every four climbs, and at least once,
            kbmira runs with another order of the sentences. The climbs are averaged, and so are the runs.
        seed: random seed. Different seeds have no climb or run in common.
    """

    name: ClassVar[str] = "mean"
    climbs: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, integer=True, maximum=MAX_COUNT, climbs=self.climbs)
        check_numbers(0, integer=True, seed=self.seed)

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        return f"{self.name}|climbs:{self.climbs}|initial:{ALL_KNOWN},{SOME_NEW}|seed:{self.seed}"


@dataclass(frozen=True)
class AutoSettings(MeanSettings):
    """Settings of the tuner `auto`, which checks whether another tuner is significantly better than the mean.

    The number of climbs and runs equals the default `runs` of mert and kbmira, so that `auto` compares the scores that
    these tuners would have.
    """

    name: ClassVar[str] = "auto"
    climbs: int = 20


def tune(problem: Problem, settings: MeanSettings) -> Tuned:
    """Tune weights by all tuners and return their mean."""
    weights = tune_all(problem, settings)[MEAN]
    return Tuned(weights, problem.measure(weights))


def tuner_names(problem: Problem) -> tuple[str, ...]:
    """Return the keys of the weights that `tune_all` returns for a problem."""
    points = () if problem.candidates.space.sparse else ("mert",)
    return ("kbmira", "expected", "kbmira and expected", *points, MEAN)


def tune_all(problem: Problem, settings: MeanSettings) -> dict[str, Array]:
    """Return the (size,) weights of each tuner, of the mean of kbmira and expected, and of the mean of all, by name.

    Only the mean of all is interpolated with the initial weights. If there are sparse features, mert is left out
    because it does not tune them.
    """
    runs, climbs = max(1, settings.climbs // CLIMBS_PER_RUN), 0 if problem.candidates.space.sparse else settings.climbs
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
    weights[MEAN] = interpolate_with_initial(problem, average(problem, members), initial_fraction(problem))
    return weights


def _seeds(seed: int, count: int) -> list[int]:
    """Return `count` seeds. Different values of `seed` give disjoint seeds."""
    return [((seed - 1) * count + 1 + number) % SEEDS for number in range(count)]


def average(problem: Problem, members: list[Array]) -> Array:
    """Return the (size,) mean of weights that are first divided by the spread of their scores."""
    mean: Array = np.mean([weights / (_spread(problem, weights) or 1.0) for weights in members], axis=0)  # (size,)
    return mean


def initial_fraction(problem: Problem) -> float:
    """Return the interpolation weight of the initial weights, 0 to 1.

    It is count / (count + n), where count is `ALL_KNOWN` or `SOME_NEW` and n is the number of sentences.
    """
    pseudo_count = ALL_KNOWN if problem.initial.all() else SOME_NEW
    return pseudo_count / (pseudo_count + len(problem.candidates.sentences))


def interpolate_with_initial(problem: Problem, weights: Array, fraction: float) -> Array:
    """Return (size,) weights interpolated with the initial weights, for features whose initial weight is not 0.

    The initial weights are first scaled so that, over these features, their scores have the spread of the scores of the
    tuned weights.

    Args:
        problem: the problem with the initial weights.
        weights: (size,) tuned weights.
        fraction: weight of the initial weights in the interpolation, 0 to 1.
    """
    known = problem.initial != 0  # (size,)
    tuned, initial = weights * known, problem.initial
    spread, spread_of_initial = _spread(problem, tuned), _spread(problem, initial)
    if not (spread and spread_of_initial):
        return weights
    mixed = (1 - fraction) * tuned + fraction * initial * spread / spread_of_initial  # (size,)
    return np.where(known, mixed, weights)  # (size,)


def _spread(problem: Problem, weights: Array) -> float:
    """Return the pooled standard deviation within sentences of the scores under these weights."""
    return problem.candidates.spread_of(problem.candidates.scores(weights))
