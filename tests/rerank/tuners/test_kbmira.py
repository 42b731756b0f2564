from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.tuners.kbmira import KbmiraSettings, tune
from rerank.tuners.problem import Problem

Make = Callable[..., Problem]


@pytest.mark.parametrize("seed", range(3))
def test_a_good_feature_is_found(make_problem: Make, seed: int) -> None:
    problem = make_problem(seed)
    tuned = tune(problem, KbmiraSettings(seed=seed))
    start = problem.measure(problem.initial)
    assert start < tuned.metric == problem.measure(tuned.weights)
    best = problem.candidates.best(problem.statistics[:, 0:-1:2].sum(axis=1))
    assert tuned.metric > start + 0.9 * (float(problem.formula.score(problem.statistics[best].sum(axis=0))) - start)


def test_one_update_is_the_closed_form(make_problem: Make) -> None:
    start = np.array([-0.1, 0.2, 0.3])
    problem = replace(make_problem(0, sentences=1), initial=start)
    tuned = tune(problem, KbmiraSettings(iterations=1, C=1e9))
    background = problem.statistics + 1
    value = problem.formula.score(background) * background[:, -1]
    score = problem.candidates.dense @ start
    hope, fear = np.argmax(score + value), np.argmax(score - value)
    difference = problem.candidates.dense[hope] - problem.candidates.dense[fear]
    loss = value[hope] - value[fear] - start @ difference
    updated = start + loss / (difference @ difference) * difference
    np.testing.assert_allclose(tuned.weights, start + updated, atol=1e-12)


def test_sparse_columns_are_tuned_like_dense_columns(make_problem: Make) -> None:
    problem = replace(make_problem(1), initial=np.array([0.1, 0.2, 0.3]))
    whole = problem.candidates
    rows = np.arange(len(whole.dense))
    sparse = Sparse(np.append(rows, len(rows)), np.zeros(len(rows), dtype=np.int64), whole.dense[:, 2])
    space = FeatureSpace((("F", 2),), ("s_x",))
    split = Candidates(space, whole.sentences, whole.offsets, whole.dense[:, :2], sparse)
    np.testing.assert_allclose(
        tune(replace(problem, candidates=split), KbmiraSettings(iterations=3)).weights,
        tune(problem, KbmiraSettings(iterations=3)).weights,
        atol=1e-9,
    )


def test_one_seed_gives_the_same_weights(make_problem: Make) -> None:
    runs = [tune(make_problem(2), KbmiraSettings(iterations=2, seed=seed)).weights for seed in (4, 4, 5)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_initial_weights_are_kept_if_nothing_is_better(make_problem: Make) -> None:
    problem = replace(make_problem(3), initial=np.array([1.0, 2.0, 3.0]))
    problem.statistics[:] = problem.statistics[0]
    assert tune(problem, KbmiraSettings(iterations=2)).weights.tolist() == [1, 2, 3]
