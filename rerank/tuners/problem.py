"""What is tuned, what a tuner gets of it, and what it gives back.

A tuner gets features in units of their spread, and nothing that cannot be tuned: it need not know units, frozen weights
or constant features. A choice does not change when all weights are multiplied by one number; so the start is brought to
one scale, frozen features become one column, their score under the frozen weights, and what a tuner finds is divided by
that column's weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from features.arrays import Array, Integers
from moses_io.files.errors import InputError, shown
from rerank.linear.candidates import Candidates, FeatureSpace, spread
from rerank.metrics.formula import Formula

MOST = 10**18
"""The largest number that a setting can be."""
MOST_TIMES = 10**6
"""The same of a setting that says how often something is done, or to how many."""
LEAST_FROZEN = 0.01
"""Smallest weight of the frozen column, in shares of its start."""
SPREAD_OF_SCORES = 0.3
"""Standard deviation of scores within a sentence under the start weights; the decoder's are about this."""


@dataclass(frozen=True)
class Problem:
    """Candidates with the statistics of each, the formula of a metric, and where to start.

    Attributes:
        candidates: of the tuning set.
        statistics: (N, formula.size).
        formula: of the best candidates' summed statistics.
        start: (size,) weights in the order of the feature space.
        lower: (size,) smallest weights allowed, or one number for all; a weight with lower = upper is frozen.
        upper: (size,) largest ones.
    """

    candidates: Candidates
    statistics: Array
    formula: Formula
    start: Array
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))

    def bounds(self) -> tuple[Array, Array]:
        """(size,) smallest and largest weights allowed."""
        shape = self.start.shape
        return np.broadcast_to(self.lower, shape), np.broadcast_to(self.upper, shape)  # (size,), (size,)

    def clip(self, weights: Array) -> Array:
        """Return the nearest weights that are allowed."""
        return np.clip(weights, self.lower, self.upper)

    def measure(self, weights: Array) -> float:
        """Return the metric, 0 … 1, of the candidates that the weights choose."""
        return float(self.formula.score(self.chosen(weights).sum(axis=0)))  # ()

    def chosen(self, weights: Array) -> Array:
        """(n, formula.size) statistics of the candidates that the weights choose."""
        best = self.candidates.best(self.candidates.scores(weights))
        return self.statistics[best]  # (n, formula.size)

    def spread(self) -> Array:
        """(dense,) standard deviation of each dense feature within sentences, pooled; 0 if constant there."""
        return spread(self.candidates.dense, self.candidates.offsets)

    def of(self, sentences: Integers) -> "Problem":
        """Return the problem of some of the sentences, by their place in the list."""
        statistics = self.statistics[self.candidates.rows_of(sentences)]  # (N, formula.size)
        return replace(self, candidates=self.candidates.of(sentences), statistics=statistics)


@dataclass(frozen=True)
class Tuned:
    """What a tuner gives back.

    Attributes:
        weights: (size,) in the order of the feature space.
        metric: 0 … 1, of the best candidates under these weights.
        runs: the same of each of several runs whose weights were averaged.
    """

    weights: Array
    metric: float
    runs: tuple[float, ...] = ()


class ScaledProblem:
    """A problem to tune, and the way back.

    Dense features are divided by their standard deviation within sentences, pooled over all sentences. Sparse ones
    stay as they are: they are counts, and a rare one would be blown up.

    Attributes:
        problem: what a tuner gets.
    """

    def __init__(self, problem: Problem) -> None:
        candidates, space = problem.candidates, problem.candidates.space
        self._start, self._space = problem.clip(problem.start), space
        lower, upper = problem.bounds()
        spread = problem.spread()
        fixed = (lower == upper)[: space.dense_size]  # (dense,)
        tuned = (spread > 0) & ~fixed  # (dense,)
        every_sparse = np.ones(len(space.sparse))
        self._chosen = np.concatenate([tuned, every_sparse.astype(bool)])  # (size,)
        self._scale = _scale(problem, self._start)
        self._units = np.concatenate([spread[tuned], every_sparse]) * self._scale  # (chosen,)
        columns = candidates.dense[:, tuned] / spread[tuned]  # (N, tuned)
        start, low, high = (each[self._chosen] * self._units for each in (self._start, lower, upper))  # (chosen,)
        weighted = self._start[: space.dense_size][fixed]  # (fixed,)
        self._frozen, self._anchor = bool(weighted.any()), None
        if (spread[fixed] * weighted != 0).any():
            self._anchor = int(tuned.sum())
            columns = np.column_stack([columns, candidates.dense[:, fixed] @ weighted])  # (N, tuned + 1)
            added = np.array([1.0, LEAST_FROZEN, np.inf]) * self._scale
            start, low, high = np.insert(np.stack([start, low, high]), self._anchor, added, axis=1)  # (chosen + 1,)
        inner = FeatureSpace((("inside", columns.shape[1]),), space.sparse)
        scaled = replace(candidates, space=inner, dense=columns)
        self.problem = replace(problem, candidates=scaled, start=start, lower=low, upper=high)

    @property
    def tunable(self) -> bool:
        """Whether there is anything to tune."""
        return bool(self._chosen.any())

    def mean(self, tuned: Sequence[Array]) -> Array:
        """(size,) weights of the whole problem: the mean of those that a tuner gave back, each divided by its sum.

        What is constant or frozen keeps its start weight. Where one is frozen that is not 0 nothing is divided.
        """
        outside = [self._outside(weights) for weights in tuned]
        if self._frozen:
            mean: Array = np.mean(outside, axis=0)  # (size,)
            return mean
        return self._space.normalized(np.mean([self._space.normalized(each) for each in outside], axis=0))  # (size,)

    def _outside(self, weights: Array) -> Array:
        """(size,) weights in the user's units."""
        if self._anchor is not None:
            weights = np.delete(weights, self._anchor) * self._scale / weights[self._anchor]  # (chosen,)
        outside = self._start.copy()
        outside[self._chosen] = weights / self._units  # (chosen,)
        return outside


def divided_start(problem: Problem) -> Array:
    """(size,) the start weights, divided as tuned ones are."""
    scaled = ScaledProblem(problem)
    return scaled.mean([scaled.problem.start])


def _scale(problem: Problem, start: Array) -> float:
    """Return what the start is multiplied by, so that scores under it have a spread of `SPREAD_OF_SCORES`."""
    spread = problem.candidates.spread_of(problem.candidates.scores(start))
    return SPREAD_OF_SCORES / spread if spread > 0 else 1.0


def check_numbers(bound: int, whole: bool = False, above: bool = False, most: int = MOST, **settings: object) -> None:
    """Refuse settings that are not numbers from a bound, or `above` it, up to another one, or `whole` ones.

    Raises:
        InputError: a setting is something else.
    """
    expected = f"a {'whole ' if whole else ''}number {'above' if above else 'from'} {bound}"
    for name, value in settings.items():
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not (value > bound if above else value >= bound):
            raise InputError(f"{name}: expected {expected}, found {shown(value)}")
        if value > most:
            raise InputError(f"{name}: expected {expected} and at most {most:.0e}, found {shown(value)}")
