"""The problem as tuners see it: features in units of their spread, and nothing in it that cannot be tuned.

A tuner need not know units, frozen weights or constant features. A choice does not change when all weights are
multiplied by one number; so frozen features become one column, their score under the frozen weights, and what a tuner
finds is divided by that column's weight.
"""

from dataclasses import replace

import numpy as np

from rerank.candidates import Array, FeatureSpace
from rerank.tuners.problem import Problem
from rerank.weights import normalized

LEAST = 0.01
"""Smallest weight of the frozen column; its start is 1."""


class Inside:
    """A problem to tune, and the way back.

    Dense features are divided by their standard deviation within sentences, pooled over all sentences. Sparse ones
    stay as they are: they are counts, and a rare one would be blown up.

    Attributes:
        problem: what a tuner is to be given.
    """

    def __init__(self, problem: Problem) -> None:
        space, candidates = problem.candidates.space, problem.candidates
        self._start, self._dense = problem.clip(problem.start), space.dense_size
        lower, upper = (np.broadcast_to(bound, self._start.shape) for bound in (problem.lower, problem.upper))
        spread = problem.spread()
        fixed = (lower == upper)[: self._dense]
        self._tuned = (spread > 0) & ~fixed
        self._units = np.concatenate([spread[self._tuned], np.ones(len(space.sparse))])
        columns = candidates.dense[:, self._tuned] / spread[self._tuned]
        frozen = candidates.dense[:, fixed] @ self._start[: self._dense][fixed]
        self._frozen = bool(fixed.any())
        self._anchored = bool((spread[fixed] * self._start[: self._dense][fixed] != 0).any())
        chosen = np.concatenate([self._tuned, np.ones(len(space.sparse), dtype=bool)])
        start, bounds = self._start[chosen] * self._units, [bound[chosen] * self._units for bound in (lower, upper)]
        if self._anchored:
            columns, place = np.column_stack([columns, frozen]), self._tuned.sum()
            start, bounds = (
                np.insert(start, place, 1.0),
                [np.insert(bounds[0], place, LEAST), np.insert(bounds[1], place, np.inf)],
            )
        inner = FeatureSpace((("inside", columns.shape[1]),), space.sparse)
        self.problem = replace(
            problem,
            candidates=replace(candidates, space=inner, dense=columns),
            start=start,
            lower=bounds[0],
            upper=bounds[1],
        )

    @property
    def tunable(self) -> bool:
        """Whether there is anything to tune."""
        return len(self.problem.start) > self._anchored

    def weights(self, found: Array) -> Array:
        """(size,) weights of the whole problem from those that a tuner found.

        What is constant or frozen keeps its start weight. Where nothing is frozen all are divided by the absolute sum
        of the dense ones.
        """
        if self._anchored:
            place = self._tuned.sum()
            found = np.delete(found, place) / found[place]
        weights = self._start.copy()
        weights[np.concatenate([self._tuned, np.ones(len(weights) - self._dense, dtype=bool)])] = found / self._units
        return weights if self._frozen else normalized(weights, self._dense)
