"""The mean of three tuners gives them equal influence, and regularizes towards the initial weights."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from moses_io.files.errors import InputError
from rerank.linear.candidates import FeatureSpace, Sparse
from rerank.tuners import expected, kbmira, mert
from rerank.tuners.mean import (
    ALL_KNOWN,
    MEAN,
    SOME_NEW,
    MeanSettings,
    initial_fraction,
    interpolate_with_initial,
    tune_all,
    tuner_names,
)
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.tune import make_tuning

MakeProblem = Callable[..., Problem]


def spread(problem: Problem, weights: np.ndarray) -> float:
    """Return the standard deviation of scores within sentences, computed sentence by sentence."""
    scores = problem.candidates.scores(weights).reshape(len(problem.candidates.sentences), -1)
    return float(np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean()))


def in_units(problem: Problem, weights: np.ndarray) -> np.ndarray:
    """Divide weights by the spread of their scores."""
    return weights / spread(problem, weights)


def together(problem: Problem, members: list[np.ndarray]) -> np.ndarray:
    """Sum weight vectors, each divided by the spread of its scores."""
    return np.sum([in_units(problem, member) for member in members], axis=0)


@pytest.mark.parametrize(("seed", "climbs", "runs"), [(1, 2, [1]), (2, 9, [3, 4])])
def test_all_tuners_have_equal_influence(make_problem: MakeProblem, seed: int, climbs: int, runs: list[int]) -> None:
    problem = replace(make_problem(1), initial=np.array([2.0, 1.0, 0.0]))
    weights = tune_all(problem, MeanSettings(climbs=climbs, seed=seed))
    first = (seed - 1) * climbs + 1
    points = [mert.tune(problem, mert.MertSettings(seed=first + number)).weights for number in range(climbs)]
    margins = [kbmira.tune(problem, kbmira.KbmiraSettings(seed=run)).weights for run in runs]
    gradient = expected.tune(problem, expected.ExpectedSettings()).weights
    two = together(problem, [together(problem, margins), gradient])
    assert in_units(problem, weights["kbmira and expected"]) == pytest.approx(in_units(problem, two))
    three = together(problem, [together(problem, margins), gradient, together(problem, points)])
    drawn = interpolate_with_initial(problem, three, SOME_NEW / (SOME_NEW + len(problem.candidates.sentences)))
    assert in_units(problem, weights[MEAN]) == pytest.approx(in_units(problem, drawn))
    assert set(weights) == set(tuner_names(problem))


def test_weights_are_interpolated_with_the_initial_weights(make_problem: MakeProblem) -> None:
    problem, weights = replace(make_problem(1), initial=np.array([2.0, 1.0, 0.0])), np.array([0.5, -1.0, 0.7])
    old, initial = weights * [1, 1, 0], problem.initial
    by_hand = 0.8 * old + 0.2 * initial * spread(problem, old) / spread(problem, initial) + weights * [0, 0, 1]
    drawn = interpolate_with_initial(problem, weights, 0.2)
    assert drawn.tolist() == pytest.approx(by_hand.tolist()) and drawn[2] == weights[2]
    assert spread(problem, drawn * [1, 1, 0]) <= spread(problem, old)
    assert interpolate_with_initial(problem, weights, 0.0).tolist() == pytest.approx(weights.tolist())
    assert interpolate_with_initial(problem, initial, 0.2).tolist() == pytest.approx(initial.tolist())


def test_weights_without_a_common_feature_are_not_interpolated(make_problem: MakeProblem) -> None:
    for initial, weights in (([0, 0, 0], [1, 1, 1]), ([2, 1, 0], [0, 0, 1])):
        problem = replace(make_problem(1), initial=np.array(initial, dtype=float))
        assert interpolate_with_initial(problem, np.array(weights, dtype=float), 0.5).tolist() == weights


def test_initial_weights_have_less_influence_on_more_data_and_new_features(
    make_problem: MakeProblem,
) -> None:
    few, many = make_problem(1, sentences=20), make_problem(1, sentences=80)
    assert initial_fraction(few) == SOME_NEW / (SOME_NEW + 20) > initial_fraction(many) == SOME_NEW / (SOME_NEW + 80)
    assert initial_fraction(replace(few, initial=np.ones(3))) == ALL_KNOWN / (ALL_KNOWN + 20) > initial_fraction(few)


def test_mert_is_not_used_with_sparse_features(make_problem: MakeProblem) -> None:
    problem = make_problem(2)
    size = len(problem.statistics)
    sparse = Sparse(np.arange(size + 1), np.zeros(size, dtype=np.int64), np.ones(size))
    candidates = replace(problem.candidates, space=FeatureSpace((("F", 3),), ("p_x",)), sparse=sparse)
    rare = replace(problem, candidates=candidates, initial=np.append(problem.initial, 0.0))
    assert (
        set(tune_all(rare, MeanSettings()))
        == set(tuner_names(rare))
        == {"kbmira", "expected", "kbmira and expected", MEAN}
    )


def test_the_best_feature_dominates_and_frozen_weights_stay(make_problem: MakeProblem) -> None:
    problem = make_problem(3, good=2)
    weights = run(problem, make_tuning({"tuner": "mean"})).weights
    assert weights[2] > 0.5 and np.abs(weights).sum() == pytest.approx(1)
    bound = np.array([-np.inf, 1.0, -np.inf])
    frozen = run(
        replace(problem, lower=bound, upper=-np.where(np.isinf(bound), bound, -bound)), make_tuning({"tuner": "mean"})
    ).weights
    assert frozen[1] == 1 and frozen[2] > 1


def test_signatures_and_wrong_settings() -> None:
    assert make_tuning({"tuner": "mean", "seed": 3}).signature == "mean|climbs:5|initial:150,30|seed:3"
    assert make_tuning({"tuner": "auto"}).signature == "auto|climbs:20|initial:150,30|seed:1"
    with pytest.raises(InputError, match="runs: not a setting of auto"):
        make_tuning({"tuner": "auto", "runs": 2})
    with pytest.raises(InputError, match="climbs: expected a whole number from 1"):
        make_tuning({"tuner": "mean", "climbs": 0})


def test_repeated_tuning_uses_one_run() -> None:
    assert make_tuning({"tuner": "auto", "seed": 3}).once == make_tuning({"tuner": "mean", "seed": 3})
    assert make_tuning({"tuner": "auto", "climbs": 2}).once == make_tuning({"tuner": "mean", "climbs": 2})
    assert make_tuning({"tuner": "kbmira", "C": 0.01}).once == make_tuning({"tuner": "kbmira", "C": 0.01, "runs": 1})
