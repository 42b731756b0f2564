"""Minimum error rate training (Och 2003): exact line search, along the axes and random directions, again and again.

Along a line w + x·d the score of a candidate is a line in x; the best candidate of a sentence changes only at the
corners of the upper envelope of its candidates' lines. All corners of all sentences, in order of x, give the metric
everywhere. The best of all directions is taken, until it gains no more (as Moses' `powell` does). A run begins at
random near the start. The mean of many runs is worth more on other sentences than the best of them
(`docs/lab/tuning-figures.md`); with `restarts` a run begins at the start and climbs again from near the best so far,
for what is highest on this set.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from rerank.tuners.envelope import Line, Point, envelopes, outermost, sweep
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


class Step(NamedTuple):
    """The best point on a line through the weights: its worth, its x, and the direction, (size,)."""

    worth: float
    distance: float
    direction: Array


class LineSearch:
    """The best point on a line, exactly."""

    def __init__(self, problem: Problem, ridge: float = 0.0) -> None:
        self.problem, self._ridge, self._bounds = problem, ridge, problem.bounds()
        dense = problem.candidates.space.dense_size
        axes = list(np.eye(len(problem.start))[:dense])  # (size,) each
        if problem.start[dense:].any() or not dense:
            axes.append(np.concatenate([np.zeros(dense), problem.start[dense:]]))  # (size,)
        self._axes = [self.line(axis) for axis in axes]

    def line(self, direction: Array) -> Line:
        """Return how candidates gain by a direction."""
        slopes = self.problem.candidates.scores(direction)  # (N,)
        lowest, highest = outermost(slopes, self.problem.candidates.offsets)  # (n,), (n,)
        return Line(direction=direction, slopes=slopes, lowest=lowest, highest=highest)

    def point(self, weights: Array) -> Point:
        """Return who is best under the weights."""
        heights = self.problem.candidates.scores(weights)  # (N,)
        return Point(weights=weights, heights=heights, best=self.problem.candidates.best(heights))

    def worth(self, weights: Array) -> float:
        """Return the metric less what the distance to the start costs."""
        away = weights - self.problem.start
        return self.problem.measure(weights) - self._ridge * float(away @ away)

    def climb(self, weights: Array, rng: np.random.Generator, directions: int) -> Array:
        """Take the best step again and again, until it gains too little."""
        worth = -np.inf
        while True:
            point = self.point(weights)
            lines = [*self._axes, *(self._random_line(rng) for _ in range(directions))]
            step = max((self.along(point, line) for line in lines), key=lambda step: step.worth)
            if not step.worth > worth + LEAST_GAIN:
                return weights
            weights, worth = self.problem.clip(weights + step.distance * step.direction), step.worth

    def _random_line(self, rng: np.random.Generator) -> Line:
        shares = rng.standard_normal(len(self._axes))  # (axes,)
        return self.line(sum(share * axis.direction for share, axis in zip(shares, self._axes, strict=True)))  # (size,)

    def along(self, point: Point, line: Line) -> Step:
        """Return the best step on the line from the point.

        It goes to the middle of the stretch where the best worth holds. If nothing is better than the weights, it is 0.
        """
        problem, weights, direction = self.problem, point.weights, line.direction
        found = envelopes(line, point, problem.candidates.offsets)
        order = np.argsort(found.corners)  # (corners,)
        corners = found.corners[order]  # (corners,)
        sums = problem.statistics[found.first].sum(axis=0)  # (formula.size,)
        metrics = sweep(found, order, problem.statistics, sums, problem.formula.parts)  # (corners + 1,)
        points = _points(corners, *self._reach(weights, direction))
        here = int(np.searchsorted(corners, 0.0))
        on_corner = here < len(corners) and corners[here] == 0  # candidates tie, so that no stretch has the weights
        points[here] = 0.0 if np.isnan(points[here]) and not on_corner else points[here]
        metric = problem.formula.score(problem.statistics[point.best].sum(axis=0)) if on_corner else metrics[here]  # ()
        away = weights - problem.start
        with np.errstate(over="ignore", invalid="ignore"):  # of points that are too far to reckon with
            along, square = 2 * (away @ direction), direction @ direction  # (), ()
            costs = (away @ away) + points * (along + points * square)  # (corners + 1,)
            worths = np.where(np.isfinite(costs), metrics - self._ridge * costs, -np.inf)  # (corners + 1,)
        best, stay = int(np.argmax(worths)), float(metric - self._ridge * (away @ away))
        distance = float(points[best]) if worths[best] > stay else 0.0
        return Step(worth=max(float(worths[best]), stay), distance=distance, direction=direction)

    def _reach(self, weights: Array, direction: Array) -> tuple[float, float]:
        """Return the smallest and the largest x with weights that are allowed."""
        moving = direction != 0
        ends = [(bound[moving] - weights[moving]) / direction[moving] for bound in self._bounds]  # (moving,)
        return float(np.minimum(*ends).max(initial=-np.inf)), float(np.maximum(*ends).min(initial=np.inf))


def _points(corners: Array, lowest: float, highest: float) -> Array:
    """(corners + 1,) a point in each interval: its middle, or near the outermost corners; nan for one out of reach."""
    starts, ends = np.append(-np.inf, corners), np.append(corners, np.inf)  # (corners + 1,)
    starts[0], ends[-1] = (corners[0] - 2 * BEYOND, corners[-1] + 2 * BEYOND) if len(corners) else (-BEYOND, BEYOND)
    starts, ends = np.maximum(starts, lowest), np.minimum(ends, highest)  # (corners + 1,)
    return np.where(starts < ends, (starts + ends) / 2, np.nan)  # (corners + 1,)
