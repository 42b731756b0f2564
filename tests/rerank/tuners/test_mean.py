"""The mean of three tuners counts each of them alike, and the start weights as some sentences more."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from moses_io.errors import InputError
from rerank.candidates import FeatureSpace, Sparse
from rerank.tuners import expected, kbmira, mert
from rerank.tuners.mean import ALL_KNOWN, MEAN, SOME_NEW, MeanSettings, drawn_to_start, names, several
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.settings import settle

MakeProblem = Callable[..., Problem]


def spread(problem: Problem, weights: np.ndarray) -> float:
    """Return the standard deviation of scores within sentences, sentence by sentence."""
    scores = problem.candidates.scores(weights).reshape(len(problem.candidates.sentences), -1)
    return float(np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean()))


def test_each_tuner_counts_alike_whatever_the_size_of_its_weights(make_problem: MakeProblem) -> None:
    problem = make_problem(1)
    weights = several(problem, MeanSettings(climbs=2))
    climbs = [mert.tune(problem, mert.MertSettings(seed=seed)).weights for seed in (1, 2)]
    points = sum(each / spread(problem, each) for each in climbs)
    parts = [
        kbmira.tune(problem, kbmira.KbmiraSettings()).weights,
        expected.tune(problem, expected.ExpectedSettings()).weights,
    ]
    by_hand = drawn_to_start(problem, sum(each / spread(problem, each) for each in (*parts, points)))
    assert weights[MEAN] / spread(problem, weights[MEAN]) == pytest.approx(by_hand / spread(problem, by_hand))
    two = sum(each / spread(problem, each) for each in parts)
    both = weights["kbmira and expected"]
    assert both / spread(problem, both) == pytest.approx(two / spread(problem, two))
    assert set(weights) == set(names(problem))


def test_what_the_start_knows_is_drawn_to_it_and_keeps_its_spread(make_problem: MakeProblem) -> None:
    problem = replace(make_problem(1), start=np.array([2.0, 1.0, 0.0]))
    sentences, weights = len(problem.candidates.sentences), np.array([0.5, -1.0, 0.7])
    old, start = weights * [1, 1, 0], problem.start
    share = SOME_NEW / (SOME_NEW + sentences)
    mixed = (1 - share) * old / spread(problem, old) + share * start / spread(problem, start)
    by_hand = mixed * spread(problem, old) / spread(problem, mixed) + weights * [0, 0, 1]
    drawn = drawn_to_start(problem, weights)
    assert drawn.tolist() == pytest.approx(by_hand.tolist()) and drawn[2] == weights[2]
    assert spread(problem, drawn * [1, 1, 0]) == pytest.approx(spread(problem, old))
    assert drawn_to_start(problem, start).tolist() == pytest.approx(start.tolist())


def test_the_start_counts_more_where_it_knows_all_and_not_where_it_knows_nothing(make_problem: MakeProblem) -> None:
    problem = make_problem(1)
    all_known, some_new = np.array([2.0, 1.0, 1.0]), np.array([2.0, 1.0, 0.0])
    assert ALL_KNOWN > SOME_NEW
    for start in (all_known, some_new):
        drawn = [drawn_to_start(replace(each, start=start), np.ones(3)) for each in (problem, twice(problem))]
        first, second = (abs(weights[0] / weights[1] - 1) for weights in drawn)
        assert 0 < second < first < 1, "the start counts less where there are more sentences"
    drawn = [drawn_to_start(replace(problem, start=start), np.ones(3)) for start in (all_known, some_new)]
    assert drawn[0][0] / drawn[0][1] > drawn[1][0] / drawn[1][1] > 1
    for start, weights in ((np.zeros(3), np.ones(3)), (some_new, np.array([0.0, 0.0, 1.0]))):
        assert drawn_to_start(replace(problem, start=start), weights).tolist() == weights.tolist()


def twice(problem: Problem) -> Problem:
    """Return the problem with each sentence a second time."""
    sentences = np.arange(len(problem.candidates.sentences))
    return problem.of(np.concatenate([sentences, sentences]))


def test_mert_has_no_part_where_features_are_sparse(make_problem: MakeProblem) -> None:
    problem = make_problem(2)
    size = len(problem.statistics)
    sparse = Sparse(np.arange(size + 1), np.zeros(size, dtype=np.int64), np.ones(size))
    candidates = replace(problem.candidates, space=FeatureSpace((("F", 3),), ("p_x",)), sparse=sparse)
    rare = replace(problem, candidates=candidates, start=np.append(problem.start, 0.0))
    assert set(several(rare, MeanSettings())) == set(names(rare)) == {"kbmira", "expected", "kbmira and expected", MEAN}


def test_one_feature_that_tells_all_is_taken_and_what_is_frozen_stays(make_problem: MakeProblem) -> None:
    problem = make_problem(3, good=2)
    weights = run(problem, settle({"tuner": "mean"})).weights
    assert weights[2] > 0.5 and np.abs(weights).sum() == pytest.approx(1)
    bound = np.array([-np.inf, 1.0, -np.inf])
    frozen = run(
        replace(problem, lower=bound, upper=-np.where(np.isinf(bound), bound, -bound)), settle({"tuner": "mean"})
    ).weights
    assert frozen[1] == 1 and frozen[2] > 1


def test_settings_say_what_they_are() -> None:
    assert settle({"tuner": "mean", "seed": 3}).signature == "mean|climbs:5|seed:3"
    assert settle({"tuner": "auto"}).signature == "auto|climbs:5|seed:1"
    with pytest.raises(InputError, match="runs: auto tunes once"):
        settle({"tuner": "auto", "runs": 2})
    with pytest.raises(InputError, match="climbs: expected a whole number from 1"):
        settle({"tuner": "mean", "climbs": 0})
