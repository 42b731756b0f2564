from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rerank.tuners.mert import LineSearch, MertSettings, tune
from rerank.tuners.problem import Problem

Make = Callable[..., Problem]


@pytest.mark.parametrize("seed", range(6))
def test_the_line_search_finds_the_best_of_a_fine_grid(problem: Make, seed: int) -> None:
    given = problem(seed, sentences=4, candidates=6)
    if seed % 2:
        given.candidates.dense[:] = np.round(given.candidates.dense)  # parallel lines, corners that meet
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    search = LineSearch(given)
    step = search.along(weights, given.candidates.scores(weights), search.line(direction))
    assert step.worth == pytest.approx(given.measure(weights + step.distance * direction), abs=1e-12)
    grid = [given.measure(weights + x * direction) for x in np.linspace(-50, 50, 20001)]
    assert step.worth >= max(grid) - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_line_search_within_bounds_and_with_a_ridge(problem: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    bounds = np.sort(np.c_[weights - 0.3, weights + rng.random(3)], axis=1)
    given = replace(problem(seed, sentences=4, candidates=6), lower=bounds[:, 0], upper=bounds[:, 1])
    search = LineSearch(given, ridge=0.01)
    step = search.along(weights, given.candidates.scores(weights), search.line(direction))
    end = weights + step.distance * direction
    assert (end == given.clip(end)).all()
    assert step.worth == pytest.approx(search.worth(end), abs=1e-12)
    grid = [weights + x * direction for x in np.linspace(-5, 5, 4001)]
    allowed = [given.measure(point) for point in grid if (point == given.clip(point)).all()]
    assert given.measure(best_on(given, weights, direction)) >= max(allowed) - 1e-12


def best_on(given: Problem, weights: np.ndarray, direction: np.ndarray) -> np.ndarray:
    search = LineSearch(given)
    step = search.along(weights, given.candidates.scores(weights), search.line(direction))
    return weights + step.distance * direction


def test_nothing_better_is_no_step(problem: Make) -> None:
    given = problem(1)
    given.statistics[:] = given.statistics[0]
    search = LineSearch(given)
    line = search.line(np.array([1.0, 0, 0]))
    assert search.along(np.zeros(3), np.zeros(len(given.statistics)), line).distance == 0
    tuned = tune(given, MertSettings(restarts=1))
    assert tuned.weights.tolist() == given.start.tolist()


def test_mert_reaches_the_best_that_can_be(problem: Make) -> None:
    given = problem(2)
    tuned = tune(given, MertSettings(restarts=3))
    best = given.candidates.best(given.statistics[:, 0:-1:2].sum(axis=1))
    assert tuned.metric == given.measure(tuned.weights)
    assert tuned.metric >= 0.99 * float(given.formula.score(given.statistics[best].sum(axis=0)))
    again = tune(given, MertSettings(restarts=3))
    assert (again.weights == tuned.weights).all()


def test_a_constant_feature_does_no_harm(problem: Make) -> None:
    given = problem(3)
    given.candidates.dense[:, 1] = 7
    tuned = tune(replace(given, start=np.array([0.1, 0.5, 0.1])), MertSettings(restarts=2))
    assert np.isfinite(tuned.weights).all() and tuned.metric > tuned.start
