from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from features.arrays import Array
from rerank.confidence.fitting import Outcome, _Choices, _cross_fitted, correlation, groups
from rerank.confidence.regression import (
    INVERSE_PENALTY,
    LEARNING_RATE,
    MIN_CASES,
    MIN_SENTENCES_PER_SIDE,
    PENALTIES,
    PREDICTOR_FRACTION,
    SENTENCE_FRACTION,
    STEPS,
    fit_logistic,
    fit_score,
    probabilities,
)
from rerank.tuning.folds import partition

NAMES = ("a", "b", "c")


@pytest.fixture
def rows() -> Array:
    rows = np.random.default_rng(3).normal([5, -100, 7], [1, 30, 0], (60, 3))  # (60, 3), the last one constant
    rows[0, 0] = 1000
    return rows


def clipped(rows: Array) -> Array:
    return np.clip(rows, -3, 3)


def test_values_equal_scikit_learn(rows: Array) -> None:
    scores = rows @ [0.1, 0.5, 0] + np.random.default_rng(4).normal(0, 5, 60)
    steps = GradientBoostingRegressor(
        n_estimators=STEPS, learning_rate=LEARNING_RATE, max_depth=1, random_state=0,
        min_samples_leaf=MIN_SENTENCES_PER_SIDE, subsample=SENTENCE_FRACTION, max_features=PREDICTOR_FRACTION,
    )  # fmt: skip
    oracles = [
        make_pipeline(StandardScaler(), FunctionTransformer(clipped), model).fit(rows, scores).predict(rows)
        for model in (RidgeCV(PENALTIES), steps)
    ]
    assert np.ptp(oracles[1]) > 1
    assert fit_score(NAMES, rows, scores).values(rows) == pytest.approx(np.mean(oracles, axis=0))
    helped = (scores > np.median(scores)).astype(float)
    classifier = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000)
    oracle = make_pipeline(StandardScaler(), FunctionTransformer(clipped), classifier).fit(rows, helped)
    mine = probabilities(fit_logistic(NAMES, rows, helped).values(rows))
    assert mine == pytest.approx(oracle.predict_proba(rows)[:, 1])


def test_few_sentences_give_the_mean(rows: Array) -> None:
    few = rows[: MIN_CASES - 1]
    assert fit_score(NAMES, few, np.arange(len(few), dtype=float)).values(rows) == pytest.approx(4.0)
    helped = np.zeros(60)
    helped[: MIN_CASES - 1] = 1
    assert probabilities(fit_logistic(NAMES, rows, helped).values(rows)) == pytest.approx(10 / 62)
    assert probabilities(fit_logistic((), np.zeros((0, 0)), np.zeros(0)).values(np.zeros((2, 0)))) == pytest.approx(0.5)


def test_estimates_of_a_fold_do_not_depend_on_its_actual_scores() -> None:
    rng, none = np.random.default_rng(5), np.zeros(60, dtype=bool)
    choices = _Choices(
        names=(NAMES, ()),
        choice=rng.normal(size=(60, 3)),
        change=np.zeros((60, 0)),
        changed=none,
        actual=rng.uniform(0, 100, 60),
        gains=np.zeros(60),
        differs=False,
    )
    folds = partition(60, 3)
    changed = choices.actual.copy()
    changed[folds[1]] = changed[folds[1]][::-1]
    one, other = (_cross_fitted(replace(choices, actual=actual), folds)[0] for actual in (choices.actual, changed))
    assert one.expected[folds[1]].tolist() == other.expected[folds[1]].tolist()
    assert (one.expected[folds[0]] != other.expected[folds[0]]).any()


def test_correlation_and_quarters_of_a_fit() -> None:
    expected, nan = np.array([10.0, 40, 20, 30, 50]), np.nan
    helped = np.array([nan, 0.25, 0.5, 0.75, 0.5])
    gains = np.array([0, -1.0, 0, 3, 2])
    fit = Outcome(expected, helped, best_predictor=-expected, actual=2 * expected, gains=gains).fit()
    assert (fit.correlation, fit.best_predictor) == pytest.approx((1, 1))
    assert [(part.count, part.expected, part.actual) for part in fit.quarters] == [
        (2, 15, 30), (1, 30, 60), (1, 40, 80), (1, 50, 100),
    ]  # fmt: skip
    assert [(part.expected, part.actual) for part in fit.changes] == [(0.25, 0), (0.5, 1), (0.75, 1)]
    assert correlation(expected, np.ones(5)) == correlation(np.ones(1), np.ones(1)) == 0
    assert groups(np.zeros(0), np.zeros(0)) == ()
