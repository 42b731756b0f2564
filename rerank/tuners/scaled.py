"""The problem as tuners see it: features in units of their spread, and nothing in it that cannot be tuned.

A tuner need not know units, frozen weights or constant features. A choice does not change when all weights are
multiplied by one number; so the start is brought to one scale, frozen features become one column, their score under
the frozen weights, and what a tuner finds is divided by that column's weight.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from features.arrays import Array
from rerank.linear.candidates import FeatureSpace
from rerank.tuners.problem import Problem

LEAST = 0.01
"""Smallest weight of the frozen column, in shares of its start."""
SCORES = 0.3
"""Standard deviation of scores within a sentence under the start weights; the decoder's are about this."""


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
            added = np.array([1.0, LEAST, np.inf]) * self._scale
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
    """Return what the start is multiplied by, so that scores under it have a spread of `SCORES`."""
    spread = problem.candidates.spread_of(problem.candidates.scores(start))
    return SCORES / spread if spread > 0 else 1.0
