"""Minimum error rate training (Och 2003): exact line search, along the axes and random directions, again and again.

Along a line w + x·d the score of a candidate is a line in x; the best candidate of a sentence changes only at the
corners of the upper envelope of its candidates' lines. All corners of all sentences, in order of x, give the metric
everywhere. The best of all directions is taken, until it gains no more (as Moses' `powell` does). A run begins at
random near the start. The mean of many runs is worth more on other sentences than the best of them (`docs/tuning.md`);
with `restarts` a run begins at the start and climbs again from near the best so far, for what is highest on this set.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from rerank.metrics.formula import Parts, value
from rerank.tuners.problem import MOST_TIMES, Problem, Tuned, check_numbers

LEAST_GAIN = 1e-5
NOISE = 1.0
"""How far from the start a run begins, in shares of the weights."""
NOISES = (0.1, 0.3)
"""How far from the best so far each of two searches begins anew."""
BEYOND = 0.1
"""How far beyond the outermost corner a weight is set that is best there."""


@dataclass(frozen=True)
class MertSettings:
    """Settings.

    Attributes:
        restarts: new beginnings of each of two searches.
        directions: random directions beside the axes, at each step.
        ridge: what the squared distance to the start costs, in units of the metric.
        seed: of both.
    """

    restarts: int = 0
    directions: int = 3
    ridge: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(0, whole=True, most=MOST_TIMES, restarts=self.restarts, directions=self.directions)
        check_numbers(0, whole=True, seed=self.seed)
        check_numbers(0, ridge=self.ridge)

    @property
    def signature(self) -> str:
        """What made the weights."""
        ridge = f"|ridge:{self.ridge:g}" if self.ridge else ""
        return f"mert|restarts:{self.restarts}|directions:{self.directions}{ridge}|seed:{self.seed}"


def tune(problem: Problem, settings: MertSettings) -> Tuned:
    """Tune the dense weights; sparse ones keep their start weights, all times one number that is tuned with them."""
    search = LineSearch(problem, settings.ridge)
    rngs = [np.random.default_rng([settings.seed, number]) for number in range(1 + len(NOISES))]
    near = problem.start if settings.restarts else _near(problem, problem.start, NOISE, rngs[0])
    begin = search.climb(near, rngs[0], settings.directions)
    ends = [problem.start, begin]
    if settings.restarts:
        with ThreadPoolExecutor(len(NOISES)) as pool:
            ends += pool.map(lambda noise, rng: _chain(search, begin, settings, noise, rng), NOISES, rngs[1:])
    best = max(ends, key=search.worth)
    return Tuned(best, problem.measure(best))


def _chain(search: "LineSearch", begin: Array, settings: MertSettings, noise: float, rng: np.random.Generator) -> Array:
    """Climb again and again from near the best so far."""
    best = begin
    for _ in range(settings.restarts):
        near = _near(search.problem, best, noise, rng)
        best = max(best, search.climb(near, rng, settings.directions), key=search.worth)
    return best


def _near(problem: Problem, weights: Array, noise: float, rng: np.random.Generator) -> Array:
    """Return other dense weights: each times about 1, and some of their mean added."""
    dense, near = problem.candidates.space.dense_size, weights.copy()
    if not dense:
        return near
    near[:dense] *= 1 + noise * rng.standard_normal(dense)
    near[:dense] += noise * np.abs(weights[:dense]).mean() * rng.standard_normal(dense)
    return problem.clip(near)


@dataclass(frozen=True)
class Line:
    """A direction of weights, (size,), how fast candidates gain by it, (N,), and those of each sentence by slope."""

    direction: Array
    slopes: Array
    order: Integers


class Step(NamedTuple):
    """The best point on a line through the weights: its worth, its x, and the direction, (size,)."""

    worth: float
    distance: float
    direction: Array


class Envelopes(NamedTuple):
    """Of each sentence the best candidate far to the left, (n,); x of each corner, who is best before it, and after."""

    first: Integers
    corners: Array
    old: Integers
    new: Integers


class LineSearch:
    """The best point on a line, exactly. The axes are sorted once for all."""

    def __init__(self, problem: Problem, ridge: float = 0.0) -> None:
        self.problem, self._ridge = problem, ridge
        dense = problem.candidates.space.dense_size
        axes = list(np.eye(len(problem.start))[:dense])  # (size,) each
        if problem.start[dense:].any() or not dense:
            axes.append(np.concatenate([np.zeros(dense), problem.start[dense:]]))  # (size,)
        self._axes = [self.line(axis) for axis in axes]

    def line(self, direction: Array) -> Line:
        """Sort candidates for a direction."""
        slopes = self.problem.candidates.scores(direction)  # (N,)
        return Line(direction, slopes, _ascending(slopes, self.problem.candidates.offsets))

    def worth(self, weights: Array) -> float:
        """Return the metric less what the distance to the start costs."""
        away = weights - self.problem.start
        return self.problem.measure(weights) - self._ridge * float(away @ away)

    def climb(self, weights: Array, rng: np.random.Generator, directions: int) -> Array:
        """Take the best step again and again, until it gains too little."""
        worth = -np.inf
        while True:
            heights = self.problem.candidates.scores(weights)  # (N,)
            lines = [*self._axes, *(self._random_line(rng) for _ in range(directions))]
            step = max((self.along(weights, heights, line) for line in lines), key=lambda step: step.worth)
            if not step.worth > worth + LEAST_GAIN:
                return weights
            weights, worth = self.problem.clip(weights + step.distance * step.direction), step.worth

    def _random_line(self, rng: np.random.Generator) -> Line:
        shares = rng.standard_normal(len(self._axes))  # (axes,)
        return self.line(sum(share * axis.direction for share, axis in zip(shares, self._axes, strict=True)))  # (size,)

    def along(self, weights: Array, heights: Array, line: Line) -> Step:
        """Return the best step on the line from the weights, under which candidates score heights, (N,).

        It goes to the middle of the stretch where the best worth holds. If nothing is better than the weights, it is 0.
        """
        problem, direction = self.problem, line.direction
        envelopes = _envelopes(line.slopes, heights, line.order, problem.candidates.offsets)
        order = np.argsort(envelopes.corners)  # (corners,)
        corners = envelopes.corners[order]  # (corners,)
        sums = problem.statistics[envelopes.first].sum(axis=0)  # (formula.size,)
        metrics = _sweep(envelopes, order, problem.statistics, sums, problem.formula.parts)  # (corners + 1,)
        points = _points(corners, *self._reach(weights, direction))
        here = int(np.searchsorted(corners, 0.0))
        points[here] = 0.0 if np.isnan(points[here]) else points[here]
        away = weights - problem.start
        with np.errstate(over="ignore", invalid="ignore"):  # of points that are too far to reckon with
            along, square = 2 * (away @ direction), direction @ direction  # (), ()
            costs = (away @ away) + points * (along + points * square)  # (corners + 1,)
            worths = np.where(np.isfinite(costs), metrics - self._ridge * costs, -np.inf)  # (corners + 1,)
        best, stay = int(np.argmax(worths)), float(metrics[here] - self._ridge * (away @ away))
        distance = float(points[best]) if worths[best] > stay else 0.0
        return Step(worth=max(float(worths[best]), stay), distance=distance, direction=direction)

    def _reach(self, weights: Array, direction: Array) -> tuple[float, float]:
        """Return the smallest and the largest x with weights that are allowed."""
        moving = direction != 0
        ends = [(bound[moving] - weights[moving]) / direction[moving] for bound in self.problem.bounds()]  # (moving,)
        return float(np.minimum(*ends).max(initial=-np.inf)), float(np.maximum(*ends).min(initial=np.inf))


def _points(corners: Array, lowest: float, highest: float) -> Array:
    """(corners + 1,) a point in each interval: its middle, or near the outermost corners; nan for one out of reach."""
    starts, ends = np.append(-np.inf, corners), np.append(corners, np.inf)  # (corners + 1,)
    starts[0], ends[-1] = (corners[0] - 2 * BEYOND, corners[-1] + 2 * BEYOND) if len(corners) else (-BEYOND, BEYOND)
    starts, ends = np.maximum(starts, lowest), np.minimum(ends, highest)  # (corners + 1,)
    return np.where(starts < ends, (starts + ends) / 2, np.nan)  # (corners + 1,)


@compiled(nogil=True)
def _ascending(slopes: Array, offsets: Integers) -> Integers:
    """(N,) the candidates, those of each sentence by slope."""
    order = np.empty(len(slopes), dtype=np.int64)
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        order[start:end] = start + np.argsort(slopes[start:end])  # (candidates,)
    return order


@compiled(nogil=True)
def _sweep(envelopes: Envelopes, order: Integers, statistics: Array, sums: Array, parts: Parts) -> Array:
    """(corners + 1,) the metric left of each corner, in this order, and right of the last.

    Minus infinity where two corners meet. Changes the sums, (formula.size,), which go along from left to right; at each
    corner one candidate of a sentence takes the place of another:

        ────── a ──────┬────── b ──────┬────── c ────── x
             sums          + b - a         + c - b
    """
    corners, old, new = envelopes.corners, envelopes.old, envelopes.new
    metrics = np.empty(len(corners) + 1)
    for place in range(len(corners) + 1):
        last = place == len(corners)
        if not last and place and corners[order[place]] == corners[order[place - 1]]:
            metrics[place] = -np.inf
        else:
            metrics[place] = value(sums, parts, False)
        if not last:
            corner = order[place]
            for column in range(len(sums)):
                sums[column] += statistics[new[corner], column] - statistics[old[corner], column]
    return metrics


@compiled(nogil=True)
def _envelopes(slopes: Array, heights: Array, order: Integers, offsets: Integers) -> Envelopes:
    r"""Return the upper envelopes of the lines heights + x · slopes, (N,), taken in this order, which is by slope.

    The lines on the stack are the envelope so far; `since` is where each begins. A new line c is the steepest. Where it
    meets b before b begins, b is highest nowhere and taken off (right); else c begins there (left):

        a \       / c       a \   / c
           \_____/             \ /
              b            b ___________
    """
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
    return Envelopes(first=first, corners=corners[:count].copy(), old=old[:count].copy(), new=new[:count].copy())
