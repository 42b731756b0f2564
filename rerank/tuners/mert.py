"""Minimum error rate training (Och 2003): exact line search, along the axes and random directions, again and again.

Along a line w + x·d the score of a candidate is a line in x; the best candidate of a sentence changes only at the
corners of the upper envelope of its candidates' lines. All corners of all sentences, in order of x, give the metric
everywhere. The best of all directions is taken, until it gains no more (as Moses' `powell` does). Then Moses begins
anew from weights drawn without regard to what it found; we begin near the best so far, and end higher in less time.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np

from rerank.candidates import Array, Integers
from rerank.kernels import value
from rerank.tuners.problem import Problem, Tuned, check_numbers

LEAST_GAIN = 1e-5
NOISES = (0.1, 0.3)
"""How far from the best so far each of two searches begins anew, in shares of the weights."""
BEYOND = 0.1
"""How far beyond the outermost corner a weight is set that is best there."""


@dataclass(frozen=True)
class MertSettings:
    """Settings.

    Attributes:
        restarts: new beginnings of each search.
        directions: random directions beside the axes, at each step.
        seed: of both.
    """

    restarts: int = 15
    directions: int = 3
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(self, {"restarts": 0, "directions": 0, "seed": 0}, [])

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"mert|restarts:{self.restarts}|directions:{self.directions}|seed:{self.seed}"


def tune(problem: Problem, settings: MertSettings) -> Tuned:
    """Tune the dense weights; sparse ones keep their start weights, all times one number that is tuned with them."""
    search = LineSearch(problem)
    chains = [(noise, np.random.default_rng([settings.seed, number])) for number, noise in enumerate(NOISES)]
    with ThreadPoolExecutor(len(chains)) as pool:
        found = list(pool.map(lambda chain: _chain(problem, search, settings, *chain), chains))
    metrics = [problem.measure(weights) for weights in found]
    best, before = int(np.argmax(metrics)), problem.measure(problem.start)
    if metrics[best] <= before:
        return Tuned(problem.start, before, before)
    return Tuned(found[best], metrics[best], before)


def _chain(
    problem: Problem, search: "LineSearch", settings: MertSettings, noise: float, rng: np.random.Generator
) -> Array:
    """Climb from the start, then again and again from near the best so far."""
    best = search.climb(problem.start, rng, settings.directions)
    metric = problem.measure(best)
    spread = problem.spread()
    unit = 1 / np.where(spread > 0, spread, np.inf)
    unit[problem.candidates.space.dense_size :] = 0
    for _ in range(settings.restarts):
        factor = 1 + noise * rng.standard_normal(problem.candidates.space.dense_size)
        near = best.copy()
        near[: len(factor)] *= factor
        near += noise * np.abs(best * spread).mean() * unit * rng.standard_normal(len(best))
        found = search.climb(near, rng, settings.directions)
        if problem.measure(found) > metric:
            best, metric = found, problem.measure(found)
    return best


class LineSearch:
    """The best point on a line, exactly. The axes are sorted once for all."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        dense = problem.candidates.space.dense_size
        self._axes = list(np.eye(len(problem.start))[:dense])
        if problem.start[dense:].any():
            self._axes.append(np.concatenate([np.zeros(dense), problem.start[dense:]]))
        self._slopes = [problem.candidates.scores(axis) for axis in self._axes]
        self._orders = [_ascending(slopes, problem.candidates.offsets) for slopes in self._slopes]

    def climb(self, weights: Array, rng: np.random.Generator, directions: int) -> Array:
        """Take the best step again and again, until it gains too little."""
        metric = -np.inf
        while True:
            gained, distance, direction = self.best_step(weights, rng, directions)
            if not gained > metric + LEAST_GAIN:
                return weights
            weights, metric = weights + distance * direction, gained

    def best_step(self, weights: Array, rng: np.random.Generator, directions: int) -> tuple[float, float, Array]:
        """Return the best metric on the axes and some random directions, how far away it is, and the direction."""
        heights = self._problem.candidates.scores(weights)
        known = zip(self._axes, self._slopes, self._orders, strict=True)
        steps = [(*self.along(slopes, heights, order), axis) for axis, slopes, order in known]
        for _ in range(directions):
            parts = rng.standard_normal(len(self._axes))
            slopes = sum(part * slope for part, slope in zip(parts, self._slopes, strict=True))
            order = _ascending(slopes, self._problem.candidates.offsets)
            direction = sum(part * axis for part, axis in zip(parts, self._axes, strict=True))
            steps.append((*self.along(slopes, heights, order), direction))
        return max(steps, key=lambda step: step[0])

    def along(self, slopes: Array, heights: Array, order: Integers) -> tuple[float, float]:
        """Return the best metric where candidates score heights + x · slopes, and the x nearest to the middle of it.

        If nothing is better than x = 0, that is the answer. `order` has the candidates of each sentence by slope.
        """
        problem = self._problem
        first, corners, old, new = _envelopes(slopes, heights, order, problem.candidates.offsets)
        by_place = np.argsort(corners)
        metrics = _sweep(
            problem.statistics[first].sum(axis=0), problem.statistics, corners, by_place, old, new,
            problem.metric.parts, problem.metric.weights,
        )  # fmt: skip
        corners = corners[by_place]
        here = int(np.searchsorted(corners, 0.0))
        best = int(np.argmax(metrics))
        if metrics[best] <= metrics[here]:
            return float(metrics[here]), 0.0
        return float(metrics[best]), _inside(corners, best)


def _inside(corners: Array, interval: int) -> float:
    """Return the middle of an interval between corners, or a point beyond the outermost ones."""
    if interval == 0:
        return float(corners[0]) - BEYOND
    if interval == len(corners):
        return float(corners[-1]) + BEYOND
    return float(corners[interval - 1] + corners[interval]) / 2


@numba.njit(cache=True, nogil=True)
def _sweep(
    sums: Array, statistics: Array, corners: Array, order: Integers, old: Integers, new: Integers,
    parts: Integers, weights: Array,
) -> Array:  # fmt: skip
    """Return the metric left of each corner and right of the last; minus infinity where two corners meet."""
    metrics = np.empty(len(corners) + 1)
    for place in range(len(corners) + 1):
        last = place == len(corners)
        if not last and place and corners[order[place]] == corners[order[place - 1]]:
            metrics[place] = -np.inf
        else:
            metrics[place] = value(sums, parts, weights, False)
        if not last:
            corner = order[place]
            for column in range(len(sums)):
                sums[column] += statistics[new[corner], column] - statistics[old[corner], column]
    return metrics


@numba.njit(cache=True, nogil=True)
def _ascending(slopes: Array, offsets: Integers) -> Integers:
    """Sort the candidates of each sentence by slope."""
    order = np.empty(len(slopes), dtype=np.int64)
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        order[start:end] = start + np.argsort(slopes[start:end])
    return order


@numba.njit(cache=True, nogil=True)
def _envelopes(
    slopes: Array, heights: Array, order: Integers, offsets: Integers
) -> tuple[Integers, Array, Integers, Integers]:
    """Return the best candidate of each sentence far to the left, and the corners: where, from which, to which."""
    sentences, count = len(offsets) - 1, 0
    first = np.empty(sentences, dtype=np.int64)
    corners = np.empty(len(slopes))
    old, new = np.empty(len(slopes), dtype=np.int64), np.empty(len(slopes), dtype=np.int64)
    stack, since = np.empty(len(slopes), dtype=np.int64), np.empty(len(slopes))
    for sentence in range(sentences):
        size = 0
        for place in range(offsets[sentence], offsets[sentence + 1]):
            line, corner, hidden = order[place], -np.inf, False
            while size:
                top = stack[size - 1]
                if slopes[line] == slopes[top]:
                    if heights[line] <= heights[top]:
                        hidden = True
                        break
                else:
                    corner = (heights[top] - heights[line]) / (slopes[line] - slopes[top])
                    if corner > since[size - 1]:
                        break
                size -= 1
                corner = -np.inf
            if not hidden:
                stack[size], since[size] = line, corner
                size += 1
        first[sentence] = stack[0]
        for number in range(1, size):
            corners[count], old[count], new[count] = since[number], stack[number - 1], stack[number]
            count += 1
    return first, corners[:count].copy(), old[:count].copy(), new[:count].copy()
