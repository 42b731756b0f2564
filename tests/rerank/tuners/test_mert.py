from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rerank.tuners.mert import LineSearch, MertSettings, tune
from rerank.tuners.problem import Problem

Make = Callable[..., Problem]


@pytest.mark.parametrize("seed", range(6))
def test_the_line_search_is_not_worse_than_a_fine_grid(make_problem: Make, seed: int) -> None:
    problem = make_problem(seed, sentences=4, candidates=6)
    if seed % 2:
        problem.candidates.dense[:] = np.round(problem.candidates.dense)  # parallel lines and coinciding intersections
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    search = LineSearch(problem)
    step = search.along(search.point(weights), search.line(direction))
    assert step.objective == pytest.approx(problem.measure(weights + step.distance * direction), abs=1e-12)
    grid = [problem.measure(weights + x * direction) for x in np.linspace(-50, 50, 5001)]
    assert step.objective >= max(grid) - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_line_search_within_bounds_and_with_a_ridge(make_problem: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    bounds = np.sort(np.c_[weights - 0.3, weights + rng.random(3)], axis=1)
    problem = replace(make_problem(seed, sentences=4, candidates=6), lower=bounds[:, 0], upper=bounds[:, 1])
    search = LineSearch(problem, ridge=0.01)
    step = search.along(search.point(weights), search.line(direction))
    end = weights + step.distance * direction
    assert (end == problem.clip(end)).all()
    assert step.objective == pytest.approx(search.objective(end), abs=1e-12)
    grid = [weights + x * direction for x in np.linspace(-5, 5, 4001)]
    allowed = [problem.measure(point) for point in grid if (point == problem.clip(point)).all()]
    assert problem.measure(best_on(problem, weights, direction)) >= max(allowed) - 1e-12


def best_on(problem: Problem, weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
    search = LineSearch(problem)
    step = search.along(search.point(weights), search.line(direction))
    return weights + step.distance * direction


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_score_of_a_step_is_correct_for_ties(make_problem: Make, sign: float) -> None:
    """At zero weights all candidates tie. The best interval may be in either direction."""
    problem = make_problem(1, sentences=4)
    search, nowhere, best = LineSearch(problem), np.zeros(3), np.array([sign, 0.0, 0.0])
    step = search.along(search.point(nowhere), search.line(best))
    assert sign * step.distance > 0 and problem.measure(step.distance * best) == pytest.approx(step.objective)
    assert step.objective > problem.measure(nowhere)
    bounded = replace(problem, upper=np.array([0.0, np.inf, np.inf]))
    search = LineSearch(bounded)
    step = search.along(search.point(nowhere), search.line(best))
    assert sign * step.distance <= 0 and problem.measure(step.distance * best) == pytest.approx(step.objective)
    assert tune(replace(problem, initial=nowhere), MertSettings()).weights[0] > 0


def test_no_step_without_improvement(make_problem: Make) -> None:
    problem = make_problem(1)
    problem.statistics[:] = problem.statistics[0]
    search = LineSearch(problem)
    line = search.line(np.array([1.0, 0, 0]))
    assert search.along(search.point(np.zeros(3)), line).distance == 0
    tuned = tune(problem, MertSettings(restarts=1))
    assert tuned.weights.tolist() == problem.initial.tolist()


def test_mert_nearly_reaches_the_oracle(make_problem: Make) -> None:
    problem = make_problem(2)
    tuned = tune(problem, MertSettings(restarts=3))
    best = problem.candidates.best(problem.statistics[:, 0:-1:2].sum(axis=1))
    assert tuned.metric == problem.measure(tuned.weights)
    assert tuned.metric >= 0.99 * float(problem.formula.score(problem.statistics[best].sum(axis=0)))
    again = tune(problem, MertSettings(restarts=3))
    assert (again.weights == tuned.weights).all()


def test_a_constant_feature_does_no_harm(make_problem: Make) -> None:
    problem = make_problem(3)
    problem.candidates.dense[:, 1] = 7
    problem = replace(problem, initial=np.array([0.1, 0.5, 0.1]))
    tuned = tune(problem, MertSettings(restarts=2))
    assert np.isfinite(tuned.weights).all() and tuned.metric > problem.measure(problem.initial)
