"""Scaling of features, frozen weights, signs and constant features, for all tuners."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rerank.linear.candidates import FeatureSpace, Sparse
from rerank.tuners.problem import Problem, ScaledProblem
from rerank.tuners.table import TUNERS, run
from rerank.tuning.tune import make_tuning

Make = Callable[..., Problem]
START = np.array([0.3, -0.5, 0.2])
FEW = {
    "kbmira": {"iterations": 8},
    "mert": {"restarts": 2},
    "pro": {},
    "expected": {},
    "mean": {"climbs": 2},
    "auto": {"climbs": 2},
}


def started(make_problem: Make, **changes: object) -> Problem:
    return replace(make_problem(3, good=0), initial=START, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("tuner", TUNERS)
def test_the_scale_of_features_does_not_matter(make_problem: Make, tuner: str) -> None:
    """A feature multiplied by 1000 gets a thousandth of its weight."""
    tuning, units = make_tuning({"tuner": tuner, "runs": 1, **FEW[tuner]}), np.array([1000.0, 1.0, 0.01])
    plain, other = started(make_problem), started(make_problem)
    other.candidates.dense[:] *= units
    weights, found = run(plain, tuning).weights, run(replace(other, initial=START / units), tuning).weights
    weights = weights / units
    np.testing.assert_allclose(found, weights / np.abs(weights).sum(), rtol=1e-4)


@pytest.mark.parametrize("tuner", TUNERS)
def test_frozen_weights_do_not_change(make_problem: Make, tuner: str) -> None:
    frozen = np.array([False, True, True])
    bounds = {"lower": np.where(frozen, START, -np.inf), "upper": np.where(frozen, START, np.inf)}
    problem = started(make_problem, **bounds)
    tuned = run(problem, make_tuning({"tuner": tuner, "runs": 1 if tuner in ("auto", "expected") else 2, **FEW[tuner]}))
    assert tuned.weights[1:].tolist() == START[1:].tolist()
    assert tuned.weights[0] != START[0] and tuned.metric > problem.measure(START)


def test_weights_frozen_at_zero_do_not_affect_the_mean_of_runs(make_problem: Make) -> None:
    """As for omitted features, all runs have equal influence on the mean, independent of the size of their weights."""
    initial = np.array([0.3, 0.0, 0.2])
    nothing = np.array([False, True, False])
    bounds = {"lower": np.where(nothing, 0, -np.inf), "upper": np.where(nothing, 0, np.inf)}
    scaled = ScaledProblem(replace(started(make_problem), initial=initial, **bounds))
    mean = scaled.mean([np.array([1.0, 3.0]), np.array([10.0, -30.0])])
    assert mean[1] == 0 and np.abs(mean).sum() == pytest.approx(1)
    one, other = (scaled.mean([each]) for each in (np.array([1.0, 3.0]), np.array([1.0, -3.0])))
    np.testing.assert_allclose(mean, (one + other) / np.abs(one + other).sum(), atol=1e-12)


@pytest.mark.parametrize("tuner", TUNERS)
def test_a_sign_is_kept(make_problem: Make, tuner: str) -> None:
    """Without bounds, the good feature gets a positive weight. The second weight may not be negative."""
    bounds = {"lower": np.array([-np.inf, 0, -np.inf]), "upper": np.array([0, np.inf, np.inf])}
    tuned = run(
        started(make_problem, **bounds),
        make_tuning({"tuner": tuner, "runs": 1 if tuner in ("auto", "expected") else 2, **FEW[tuner]}),
    )
    assert tuned.weights[0] <= 0 <= tuned.weights[1]
    assert run(started(make_problem), make_tuning({"tuner": tuner, "runs": 1, **FEW[tuner]})).weights[0] > 0


def test_a_constant_feature_keeps_its_weight(make_problem: Make) -> None:
    """Tuners do not get constant features. Their weight keeps its size relative to the initial weights."""
    constant = started(make_problem)
    constant.candidates.dense[:, 2] = np.repeat(0.1 * np.arange(20.0), 8)
    inside = ScaledProblem(constant)
    assert inside.problem.candidates.dense.shape[1] == 2
    scores = constant.candidates.dense[:, :2] @ START[:2]
    scale = 0.3 / np.sqrt(np.var(scores.reshape(20, 8), axis=1).mean())
    wanted = np.append(np.array([0.7, 0.1]) / constant.spread()[:2] / scale, 0.2)
    np.testing.assert_allclose(inside.mean([np.array([0.7, 0.1])]), wanted / np.abs(wanted).sum())


@pytest.mark.parametrize("tuner", ["kbmira", "expected", "mert"])
def test_a_strong_ridge_keeps_weights_near_the_initial_weights(make_problem: Make, tuner: str) -> None:
    near = run(started(make_problem), make_tuning({"tuner": tuner, "runs": 1, "ridge": 1e3, **FEW[tuner]})).weights
    far = run(started(make_problem), make_tuning({"tuner": tuner, "runs": 1, **FEW[tuner]})).weights
    assert np.abs(near - START).sum() < 0.2 * np.abs(far - START).sum()


@pytest.mark.parametrize("tuner", TUNERS)
def test_sparse_features_alone(make_problem: Make, tuner: str) -> None:
    """The only dense feature is constant, and all tuners work without dense features."""
    whole = started(make_problem)
    rows = np.arange(len(whole.statistics))
    sparse = Sparse(
        np.append(rows, len(rows)), np.zeros(len(rows), dtype=np.int64), whole.candidates.dense[:, 0].copy()
    )
    dense = np.ones((len(rows), 1))
    candidates = replace(whole.candidates, space=FeatureSpace((("C", 1),), ("s_x",)), dense=dense, sparse=sparse)
    only = Problem(candidates, whole.statistics, whole.formula, np.array([1.0, 0.1]))
    tuned = run(only, make_tuning({"tuner": tuner, **FEW[tuner]}))
    assert tuned.weights[1] > 0 and tuned.metric >= only.measure(only.initial)


def test_pro_with_all_weights_outside_their_bounds(make_problem: Make) -> None:
    bounds = {"lower": np.array([-np.inf, 0.0, 0.0]), "upper": np.array([0.0, np.inf, np.inf])}
    weights = run(started(make_problem, **bounds), make_tuning({"tuner": "pro", "runs": 1})).weights
    assert weights.tolist() == [0, 0, 0]


def test_the_spread_is_within_sentences(make_problem: Make) -> None:
    """A feature that differs only between sentences has a spread of 0."""
    problem = make_problem(1, sentences=5, candidates=4)
    problem.candidates.dense[:, 0] = np.repeat(0.1 * np.arange(1.0, 6.0), 4)
    wanted = np.sqrt((problem.candidates.dense.reshape(5, 4, 3).std(axis=1) ** 2).mean(axis=0))
    wanted[0] = 0  # numpy's mean of 0.3, 0.3 … is not 0.3
    np.testing.assert_allclose(problem.spread(), wanted, atol=1e-12)
