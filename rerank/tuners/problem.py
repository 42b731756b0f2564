"""Input and output of tuners, and the scaling of the input.

A tuner gets each feature divided by its spread, without frozen and constant features, so that it need not handle units,
frozen weights or constants. The selected candidates do not change if all weights are multiplied by one positive number.
Therefore:

* The initial weights are multiplied by a number that gives their scores a fixed spread.
* All frozen features become one column: their score under the frozen weights. The weights that a tuner returns are
  divided by the weight of this column, which restores the frozen weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from features.arrays import Array, Integers, row_products
from moses_io.files.errors import InputError, shown
from rerank.linear.candidates import Candidates, FeatureSpace, spread
from rerank.metrics.formula import Formula

MAX_SETTING = 10**18
"""Maximum value of a setting."""
MAX_COUNT = 10**6
"""Maximum value of a setting that is a number of iterations or items."""
MIN_FROZEN_WEIGHT = 0.01
"""Lower bound of the weight of the frozen column, relative to its initial weight."""
SPREAD_OF_SCORES = 0.3
"""Standard deviation within sentences of the scores under the scaled initial weights, about the decoder's own."""


@dataclass(frozen=True)
class Problem:
    """A tuning problem: candidates with their statistics, a metric, initial weights and bounds.

    Attributes:
        candidates: candidates of the tuning set.
        statistics: (N, formula.size) statistics of each candidate.
        formula: maps the summed statistics of the highest-scoring candidates to the metric.
        initial: (size,) initial weights, in the order of the feature space.
        lower: (size,) lower bounds of the weights, or one value for all. A weight with lower = upper is frozen.
        upper: (size,) upper bounds of the weights, or one value for all.
    """

    candidates: Candidates
    statistics: Array
    formula: Formula
    initial: Array
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))

    def bounds(self) -> tuple[Array, Array]:
        """Return the (size,) lower and the (size,) upper bounds."""
        shape = self.initial.shape
        return np.broadcast_to(self.lower, shape), np.broadcast_to(self.upper, shape)  # (size,), (size,)

    def clip(self, weights: Array) -> Array:
        """Return the nearest weights within the bounds."""
        return np.clip(weights, self.lower, self.upper)

    def measure(self, weights: Array) -> float:
        """Return the metric, at most 1, of the highest-scoring candidates under these weights."""
        return float(self.formula.score(self.chosen(weights).sum(axis=0)))  # ()

    def chosen(self, weights: Array) -> Array:
        """Return the (n, formula.size) statistics of the highest-scoring candidates under these weights."""
        best = self.candidates.best(self.candidates.scores(weights))
        return self.statistics[best]  # (n, formula.size)

    def spread(self) -> Array:
        """Return the (dense,) pooled standard deviation of each dense feature within sentences, 0 if constant there."""
        return spread(self.candidates.dense, self.candidates.offsets)

    def subset(self, sentences: Integers) -> "Problem":
        """Return the problem for some of the sentences, given by their indices in the list."""
        statistics = self.statistics[self.candidates.rows_of(sentences)]  # (N, formula.size)
        return replace(self, candidates=self.candidates.subset(sentences), statistics=statistics)

    def rows(self, rows: Integers) -> "Problem":
        """Return the problem with some candidates, at least one of each sentence, by ascending row indices (kept,)."""
        offsets = np.searchsorted(rows, self.candidates.offsets)  # (n + 1,)
        candidates = self.candidates.rows(rows, self.candidates.sentences, offsets)
        return replace(self, candidates=candidates, statistics=self.statistics[rows])  # (kept, formula.size)


@dataclass(frozen=True)
class Tuned:
    """Result of a tuner.

    Attributes:
        weights: (size,) weights, in the order of the feature space.
        metric: metric of the highest-scoring candidates under these weights, at most 1.
        runs: metric of each run, if the weights are the mean of several runs.
    """

    weights: Array
    metric: float
    runs: tuple[float, ...] = ()


class ScaledProblem:
    """A scaled problem for tuners, and the conversion of its weights to the original problem.

    Dense features are divided by their pooled standard deviation within sentences. Sparse features are not scaled: they
    are counts, and the division would make rare ones too large.

    Attributes:
        problem: the scaled problem.
    """

    def __init__(self, problem: Problem) -> None:
        candidates, space = problem.candidates, problem.candidates.space
        self._initial, self._space = problem.clip(problem.initial), space
        lower, upper = problem.bounds()
        spread = problem.spread()
        fixed = (lower == upper)[: space.dense_size]  # (dense,)
        tuned = (spread > 0) & ~fixed  # (dense,)
        ones = np.ones(len(space.sparse))
        self._tuned_columns = np.concatenate([tuned, ones.astype(bool)])  # (size,)
        self._scale = _scale(problem, self._initial)
        self._units = np.concatenate([spread[tuned], ones]) * self._scale  # (chosen,)
        columns = candidates.dense[:, tuned] / spread[tuned]  # (N, tuned)
        initial, low, high = (
            each[self._tuned_columns] * self._units for each in (self._initial, lower, upper)
        )  # (chosen,)
        weighted = self._initial[: space.dense_size][fixed]  # (fixed,)
        self._frozen, self._anchor = bool(weighted.any()), None
        # The anchor, the index of the frozen column, exists only if the frozen features affect the ranking.
        if (spread[fixed] * weighted != 0).any():
            self._anchor = int(tuned.sum())
            columns = np.column_stack([columns, row_products(candidates.dense[:, fixed], weighted)])  # (N, tuned + 1)
            added = np.array([1.0, MIN_FROZEN_WEIGHT, np.inf]) * self._scale
            initial, low, high = np.insert(np.stack([initial, low, high]), self._anchor, added, axis=1)  # (chosen + 1,)
        scaled_space = FeatureSpace((("inside", columns.shape[1]),), space.sparse)
        scaled = replace(candidates, space=scaled_space, dense=columns)
        self.problem = replace(problem, candidates=scaled, initial=initial, lower=low, upper=high)

    @property
    def tunable(self) -> bool:
        """Whether there is anything to tune."""
        return bool(self._tuned_columns.any())

    def mean(self, tuned: Sequence[Array]) -> Array:
        """Return the (size,) mean of weights from a tuner, as weights of the original problem.

        Constant and frozen features get their initial weights. The weights of each run are then divided by the sum of
        the absolute dense weights, and so is their mean. If a frozen weight is not 0, nothing is divided, so that it
        keeps its value.

        Args:
            tuned: (columns,) weights of the scaled problem, of each run.
        """
        unscaled = [self._unscaled(weights) for weights in tuned]
        if self._frozen:
            mean: Array = np.mean(unscaled, axis=0)  # (size,)
            return mean
        return self._space.normalized(np.mean([self._space.normalized(each) for each in unscaled], axis=0))  # (size,)

    def _unscaled(self, weights: Array) -> Array:
        """Return weights of the scaled problem as (size,) weights of the original problem."""
        if self._anchor is not None:
            weights = np.delete(weights, self._anchor) * self._scale / weights[self._anchor]  # (chosen,)
        unscaled = self._initial.copy()
        unscaled[self._tuned_columns] = weights / self._units  # (chosen,)
        return unscaled


def normalized_initial_weights(problem: Problem) -> Array:
    """Return the (size,) initial weights, normalized as tuned weights are."""
    scaled = ScaledProblem(problem)
    return scaled.mean([scaled.problem.initial])


def _scale(problem: Problem, initial: Array) -> float:
    """Return the factor that gives the scores under the initial weights a spread of `SPREAD_OF_SCORES`.

    It is 1 if the spread is 0.
    """
    spread = problem.candidates.spread_of(problem.candidates.scores(initial))
    return SPREAD_OF_SCORES / spread if spread > 0 else 1.0


def check_numbers(
    minimum: int, integer: bool = False, exclusive: bool = False, maximum: int = MAX_SETTING, **settings: object
) -> None:
    """Raise `InputError` if a setting is not a number in a range.

    Args:
        minimum: smallest value.
        integer: whether the number must be an integer.
        exclusive: whether `minimum` itself is not allowed.
        maximum: largest value.
        **settings: values by name.
    """
    expected = f"a {'whole ' if integer else ''}number {'above' if exclusive else 'from'} {minimum}"
    for name, value in settings.items():
        kinds = int if integer else (int, float)
        if (
            isinstance(value, bool)
            or not isinstance(value, kinds)
            or not (value > minimum if exclusive else value >= minimum)
        ):
            raise InputError(f"{name}: expected {expected}, found {shown(value)}")
        if value > maximum:
            raise InputError(f"{name}: expected {expected} and at most {maximum:.0e}, found {shown(value)}")
