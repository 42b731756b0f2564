from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rerank.candidates import Candidates, FeatureSpace, Sparse
from rerank.tuners.kbmira import KbmiraSettings, tune
from rerank.tuners.problem import Problem

Make = Callable[..., Problem]


@pytest.mark.parametrize("seed", range(3))
def test_a_good_feature_is_found(problem: Make, seed: int) -> None:
    given = problem(seed)
    tuned = tune(given, KbmiraSettings(seed=seed))
    assert tuned.start < tuned.metric == given.measure(tuned.weights)
    best = given.candidates.best(given.statistics[:, 0:-1:2].sum(axis=1))
    assert tuned.metric > tuned.start + 0.9 * (
        float(given.formula.score(given.statistics[best].sum(axis=0))) - tuned.start
    )


def test_one_step_is_the_closed_form(problem: Make) -> None:
    start = np.array([-0.1, 0.2, 0.3])
    given = replace(problem(0, sentences=1), start=start)
    tuned = tune(given, KbmiraSettings(iterations=1, step=1e9))
    background = given.statistics + 1
    value = given.formula.score(background) * background[:, -1]
    score = given.candidates.dense @ start
    hope, fear = np.argmax(score + value), np.argmax(score - value)
    difference = given.candidates.dense[hope] - given.candidates.dense[fear]
    loss = value[hope] - value[fear] - start @ difference
    updated = start + loss / (difference @ difference) * difference
    np.testing.assert_allclose(tuned.weights, start + updated, atol=1e-12)


def test_sparse_columns_are_tuned_like_dense_ones(problem: Make) -> None:
    given = replace(problem(1), start=np.array([0.1, 0.2, 0.3]))
    whole = given.candidates
    rows = np.arange(len(whole.dense))
    sparse = Sparse(np.append(rows, len(rows)), np.zeros(len(rows), dtype=np.int64), whole.dense[:, 2])
    space = FeatureSpace((("F", 2),), ("s_x",))
    split = Candidates(space, whole.sentences, whole.offsets, whole.dense[:, :2], sparse)
    np.testing.assert_allclose(
        tune(replace(given, candidates=split), KbmiraSettings(iterations=3)).weights,
        tune(given, KbmiraSettings(iterations=3)).weights,
        atol=1e-9,
    )


def test_one_seed_gives_the_same_weights(problem: Make) -> None:
    runs = [tune(problem(2), KbmiraSettings(iterations=2, seed=seed)).weights for seed in (4, 4, 5)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_the_start_is_kept_where_nothing_is_better(problem: Make) -> None:
    given = replace(problem(3), start=np.array([1.0, 2.0, 3.0]))
    given.statistics[:] = given.statistics[0]
    assert tune(given, KbmiraSettings(iterations=2)).weights.tolist() == [1, 2, 3]
