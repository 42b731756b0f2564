"""Minimum error rate training (Och 2003): repeated exact line search along the axes and random directions.

Along a line w + x·d the score of a candidate is linear in x. The best candidate of a sentence changes only at the
corners of the upper envelope of these lines. The corners of all sentences, sorted by x, give the metric everywhere on
the line. Each step takes the best point on all directions, until the gain is too small (as Moses' `powell` does).

A run begins at a random point near the initial weights. The mean of many runs is better on other sentences than the
best run (`docs/lab/tuning-figures.md`). To maximize the metric on the tuning set instead, use `restarts`: then a run
begins at the initial weights and climbs again from random points near the best weights so far.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from rerank.tuners.envelope import Line, Point, envelopes, outermost, sweep
from rerank.tuners.problem import MAX_COUNT, Problem, Tuned, check_numbers

MIN_GAIN = 1e-5
"""Gain of a step, in units of the metric (0 … 1), at or below which a climb stops."""
NOISE = 1.0
"""Relative noise on the initial weights, where a run begins."""
NOISES = (0.1, 0.3)
"""Relative noise on the best weights so far, where a restart begins, for each of two searches."""
OUTER_MARGIN = 0.1
"""Distance in x beyond an outermost corner of the point that represents the unbounded interval there."""


@dataclass(frozen=True)
class MertSettings:
    """Settings of the tuner `mert`.

    Attributes:
        restarts: number of restarts of each of two searches. With 0 there is a single climb from a random point.
        directions: number of random directions per step, in addition to the axes.
        ridge: weight of the squared distance to the initial weights, in units of the metric.
        seed: random seed for starting points and directions.
    """

    restarts: int = 0
    directions: int = 3
    ridge: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(0, integer=True, maximum=MAX_COUNT, restarts=self.restarts, directions=self.directions)
        check_numbers(0, integer=True, seed=self.seed)
        check_numbers(0, ridge=self.ridge)

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        ridge = f"|ridge:{self.ridge:g}" if self.ridge else ""
        return f"mert|restarts:{self.restarts}|directions:{self.directions}{ridge}|seed:{self.seed}"


def tune(problem: Problem, settings: MertSettings) -> Tuned:
    """Tune the dense weights. Sparse weights keep their initial ratios: only a common factor is tuned.

    Returns the best of the initial weights and the ends of all climbs.
    """
    search = LineSearch(problem, settings.ridge)
    rngs = [np.random.default_rng([settings.seed, number]) for number in range(1 + len(NOISES))]
    start = problem.initial if settings.restarts else _perturbed(problem, problem.initial, NOISE, rngs[0])
    first = search.climb(start, rngs[0], settings.directions)
    ends = [problem.initial, first]
    if settings.restarts:
        with ThreadPoolExecutor(len(NOISES)) as pool:
            ends += pool.map(lambda noise, rng: _restart(search, first, settings, noise, rng), NOISES, rngs[1:])
    best = max(ends, key=search.objective)
    return Tuned(best, problem.measure(best))


def _restart(
    search: "LineSearch", first: Array, settings: MertSettings, noise: float, rng: np.random.Generator
) -> Array:
    """Climb from random points near the best weights so far, `restarts` times, and return the best weights."""
    best = first
    for _ in range(settings.restarts):
        start = _perturbed(search.problem, best, noise, rng)
        best = max(best, search.climb(start, rng, settings.directions), key=search.objective)
    return best


def _perturbed(problem: Problem, weights: Array, noise: float, rng: np.random.Generator) -> Array:
    """Return weights with noise on the dense ones: relative to each weight, and to the mean absolute weight.

    The second noise also moves weights that are 0.
    """
    dense, perturbed = problem.candidates.space.dense_size, weights.copy()
    if not dense:
        return perturbed
    perturbed[:dense] *= 1 + noise * rng.standard_normal(dense)
    perturbed[:dense] += noise * np.abs(weights[:dense]).mean() * rng.standard_normal(dense)
    return problem.clip(perturbed)


class Step(NamedTuple):
    """Best step along a direction.

    Attributes:
        objective: metric minus the ridge penalty, at its end.
        distance: x at its end.
        direction: (size,) direction.
    """

    objective: float
    distance: float
    direction: Array


class LineSearch:
    """Exact line search for a problem."""

    def __init__(self, problem: Problem, ridge: float = 0.0) -> None:
        self.problem, self._ridge, self._bounds = problem, ridge, problem.bounds()
        dense = problem.candidates.space.dense_size
        axes = list(np.eye(len(problem.initial))[:dense])  # (size,) each
        if problem.initial[dense:].any() or not dense:
            axes.append(np.concatenate([np.zeros(dense), problem.initial[dense:]]))  # (size,)
        self._axes = [self.line(axis) for axis in axes]

    def line(self, direction: Array) -> Line:
        """Return a direction with the slopes of all candidates."""
        slopes = self.problem.candidates.scores(direction)  # (N,)
        lowest, highest = outermost(slopes, self.problem.candidates.offsets)  # (n,), (n,)
        return Line(direction=direction, slopes=slopes, lowest=lowest, highest=highest)

    def point(self, weights: Array) -> Point:
        """Return the weights with the candidates' scores and each sentence's highest-scoring candidate."""
        heights = self.problem.candidates.scores(weights)  # (N,)
        return Point(weights=weights, heights=heights, best=self.problem.candidates.best(heights))

    def objective(self, weights: Array) -> float:
        """Return the objective: the metric minus ridge times the squared distance to the initial weights."""
        displacement = weights - self.problem.initial
        return self.problem.measure(weights) - self._ridge * float(displacement @ displacement)

    def climb(self, weights: Array, rng: np.random.Generator, directions: int) -> Array:
        """Repeat the best step of all axes and new random directions until the gain is at most `MIN_GAIN`."""
        objective = -np.inf
        while True:
            point = self.point(weights)
            lines = [*self._axes, *(self._random_line(rng) for _ in range(directions))]
            step = max((self.along(point, line) for line in lines), key=lambda step: step.objective)
            if not step.objective > objective + MIN_GAIN:
                return weights
            weights, objective = self.problem.clip(weights + step.distance * step.direction), step.objective

    def _random_line(self, rng: np.random.Generator) -> Line:
        coefficients = rng.standard_normal(len(self._axes))  # (axes,)
        return self.line(
            sum(coefficient * axis.direction for coefficient, axis in zip(coefficients, self._axes, strict=True))
        )  # (size,)

    def along(self, point: Point, line: Line) -> Step:
        """Return the best step from the point along the line.

        It ends in the middle of the interval with the best objective. If no interval is better than the current
        weights, its distance is 0.
        """
        problem, weights, direction = self.problem, point.weights, line.direction
        found = envelopes(line, point, problem.candidates.offsets)
        order = np.argsort(found.corners)  # (corners,)
        corners = found.corners[order]  # (corners,)
        sums = problem.statistics[found.first].sum(axis=0)  # (formula.size,)
        metrics = sweep(found, order, problem.statistics, sums, problem.formula.parts)  # (corners + 1,)
        points = _points(corners, *self._feasible_range(weights, direction))
        current = int(np.searchsorted(corners, 0.0))
        on_corner = current < len(corners) and corners[current] == 0  # candidates tie at x = 0, which is in no interval
        # Bounds may leave x = 0 as the only point of its interval.
        points[current] = 0.0 if np.isnan(points[current]) and not on_corner else points[current]
        metric = (
            problem.formula.score(problem.statistics[point.best].sum(axis=0)) if on_corner else metrics[current]
        )  # ()
        displacement = weights - problem.initial
        with np.errstate(over="ignore", invalid="ignore"):  # distant points overflow and get -inf below
            linear, quadratic = 2 * (displacement @ direction), direction @ direction  # (), ()
            squares = (displacement @ displacement) + points * (linear + points * quadratic)  # (corners + 1,)
            objectives = np.where(np.isfinite(squares), metrics - self._ridge * squares, -np.inf)  # (corners + 1,)
        best = int(np.argmax(objectives))
        current_objective = float(metric - self._ridge * (displacement @ displacement))
        distance = float(points[best]) if objectives[best] > current_objective else 0.0
        return Step(objective=max(float(objectives[best]), current_objective), distance=distance, direction=direction)

    def _feasible_range(self, weights: Array, direction: Array) -> tuple[float, float]:
        """Return the smallest and the largest x for which the weights are within their bounds."""
        moving = direction != 0
        ends = [(bound[moving] - weights[moving]) / direction[moving] for bound in self._bounds]  # (moving,)
        return float(np.minimum(*ends).max(initial=-np.inf)), float(np.maximum(*ends).min(initial=np.inf))


def _points(corners: Array, lowest: float, highest: float) -> Array:
    """Return a (corners + 1,) point in each interval of x between corners.

    It is the middle of the interval within `lowest` … `highest`. The unbounded outermost intervals are cut off at
    2 · `OUTER_MARGIN` from their corners. An interval that is empty or out of bounds gets nan.
    """
    starts, ends = np.append(-np.inf, corners), np.append(corners, np.inf)  # (corners + 1,)
    starts[0] = corners[0] - 2 * OUTER_MARGIN if len(corners) else -OUTER_MARGIN
    ends[-1] = corners[-1] + 2 * OUTER_MARGIN if len(corners) else OUTER_MARGIN
    starts, ends = np.maximum(starts, lowest), np.minimum(ends, highest)  # (corners + 1,)
    return np.where(starts < ends, (starts + ends) / 2, np.nan)  # (corners + 1,)
