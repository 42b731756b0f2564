"""The problem as tuners see it: features in units of their spread, and nothing in it that cannot be tuned.

A tuner need not know units, frozen weights or constant features. A choice does not change when all weights are
multiplied by one number; so the start is brought to one scale, frozen features become one column, their score under
the frozen weights, and what a tuner finds is divided by that column's weight.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rerank.candidates import Array, FeatureSpace
from rerank.tuners.problem import Problem
from rerank.weights import normalized

LEAST = 0.01
"""Smallest weight of the frozen column, in shares of its start."""
SCORES = 0.3
"""Standard deviation of scores within a sentence under the start weights; the decoder's are about this."""


class Inside:
    """A problem to tune, and the way back.

    Dense features are divided by their standard deviation within sentences, pooled over all sentences. Sparse ones
    stay as they are: they are counts, and a rare one would be blown up.

    Attributes:
        problem: what a tuner is to be given.
    """

    def __init__(self, problem: Problem) -> None:
        candidates, space = problem.candidates, problem.candidates.space
        self._start, self._dense = problem.clip(problem.start), space.dense_size
        lower, upper = (np.broadcast_to(bound, self._start.shape) for bound in (problem.lower, problem.upper))
        spread = problem.spread()
        fixed = (lower == upper)[: self._dense]
        tuned = (spread > 0) & ~fixed
        self._chosen = np.concatenate([tuned, np.ones(len(space.sparse), dtype=bool)])
        self._scale = _scale(problem, self._start)
        self._units = np.concatenate([spread[tuned], np.ones(len(space.sparse))]) * self._scale
        columns = candidates.dense[:, tuned] / spread[tuned]
        start, low, high = (each[self._chosen] * self._units for each in (self._start, lower, upper))
        self._frozen, self._anchor = bool(fixed.any()), None
        weighted = self._start[: self._dense][fixed]
        if (spread[fixed] * weighted != 0).any():
            self._anchor = int(tuned.sum())
            columns = np.column_stack([columns, candidates.dense[:, fixed] @ weighted])
            added = np.array([1.0, LEAST, np.inf]) * self._scale
            start, low, high = np.insert(np.stack([start, low, high]), self._anchor, added, axis=1)
        inner = FeatureSpace((("inside", columns.shape[1]),), space.sparse)
        listed = replace(candidates, space=inner, dense=columns)
        self.problem = replace(problem, candidates=listed, start=start, lower=low, upper=high)

    @property
    def tunable(self) -> bool:
        """Whether there is anything to tune."""
        return bool(self._chosen.any())

    def mean(self, found: Sequence[Array]) -> Array:
        """(size,) weights of the whole problem: the mean of those that a tuner found, each divided by its sum.

        What is constant or frozen keeps its start weight. Where something is frozen nothing is divided.
        """
        outside = [self._outside(each) for each in found]
        if self._frozen:
            together: Array = np.mean(outside, axis=0)
            return together
        return normalized(np.mean([normalized(each, self._dense) for each in outside], axis=0), self._dense)

    def _outside(self, found: Array) -> Array:
        """(size,) weights in the user's units."""
        if self._anchor is not None:
            found = np.delete(found, self._anchor) * self._scale / found[self._anchor]
        weights = self._start.copy()
        weights[self._chosen] = found / self._units
        return weights


def _scale(problem: Problem, start: Array) -> float:
    """Return what the start is multiplied by, so that scores under it have a spread of `SCORES`."""
    candidates = problem.candidates
    scores = replace(candidates, dense=candidates.scores(start)[:, None])
    spread = float(replace(problem, candidates=scores).spread()[0])
    return SCORES / spread if spread > 0 else 1.0
