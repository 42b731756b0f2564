"""Regressions on standardized predictors, stored as plain values that any program can evaluate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from rerank import __version__

MAX_DEVIATION = 3.0
"""Standard deviations at which predictors are clipped, so that an unusual sentence does not get an extreme estimate."""

MIN_CASES = 10
"""Minimum number of sentences, of changes that helped, and of changes that hurt. With fewer the fit is a constant."""

PENALTIES = np.logspace(0, 4, 13)
"""Penalties of ridge regression. The one with the smallest leave-one-out error is chosen."""

INVERSE_PENALTY = 0.01
"""Inverse of the penalty of logistic regression."""

STEPS = 100
"""Number of rounds of boosting."""
LEARNING_RATE = 0.08
"""Learning rate of boosting."""
MIN_SENTENCES_PER_SIDE = 10
"""Minimum number of sentences on each side of a step."""
SENTENCE_FRACTION = 0.5
"""Fraction of the sentences that a round uses."""
PREDICTOR_FRACTION = 0.2
"""Fraction of the predictors that a round uses."""

SIGNATURE = f"ridge+steps:{STEPS}|logistic:{INVERSE_PENALTY}|clip:{MAX_DEVIATION:g}|version:{__version__}"


class BoostedSteps(NamedTuple):
    """K steps, each of which adds a value if a standardized predictor is above a threshold.

    Attributes:
        predictors: (K,) indices of the predictors.
        thresholds: (K,) thresholds, in standard deviations.
        rises: (K,) values that are added.
    """

    predictors: Integers
    thresholds: Array
    rises: Array

    def values(self, standardized: Array) -> Array:
        """(n,) sums of the steps for the (n, P) standardized predictors of n sentences."""
        values: Array = (standardized[:, self.predictors] > self.thresholds) @ self.rises  # (n,)
        return values


NO_STEPS = BoostedSteps(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Regression:
    """A linear function of standardized and clipped predictors, plus steps over them.

    Attributes:
        names: names of the P predictors, in the order of the columns of the input.
        means: (P,) means on dev.
        deviations: (P,) standard deviations on dev, 1 for a predictor that is constant there.
        coefficients: (P,) coefficients of the standardized predictors.
        intercept: value of a sentence that has the mean of each predictor and is above no threshold.
        steps: steps over the predictors, by their indices in `names`.
    """

    names: tuple[str, ...]
    means: Array
    deviations: Array
    coefficients: Array
    intercept: float
    steps: BoostedSteps = NO_STEPS

    def values(self, rows: Array) -> Array:
        """(n,) values for the (n, P) predictors of sentences."""
        standardized = _standardized(rows, self.means, self.deviations)  # (n, P)
        values: Array = standardized @ self.coefficients + self.steps.values(standardized) + self.intercept  # (n,)
        return values


def fit_score(names: Sequence[str], rows: Array, actual: Array) -> Regression:
    """Fit sentence scores by the mean of ridge regression and boosted steps.

    With fewer than `MIN_CASES` sentences the fit is the mean score.

    Args:
        names: names of the P predictors.
        rows: (n, P) predictors.
        actual: (n,) actual scores.
    """
    from sklearn.linear_model import RidgeCV

    if len(rows) < MIN_CASES:
        return _constant(names, float(actual.mean()))
    means, deviations = _moments(rows)
    standardized = _standardized(rows, means, deviations)  # (n, P)
    # scikit-learn only fits. `Regression` evaluates, so the file has plain values and no pickle that could run code.
    ridge = RidgeCV(PENALTIES).fit(standardized, actual)
    steps, lowest = _boosted(standardized, actual)
    return Regression(
        names=tuple(names),
        means=means,
        deviations=deviations,
        coefficients=ridge.coef_ / 2,
        intercept=(float(ridge.intercept_) + lowest) / 2,
        steps=steps._replace(rises=steps.rises / 2),
    )


def _boosted(standardized: Array, actual: Array) -> tuple[BoostedSteps, float]:
    """Boost steps over (n, P) predictors to fit (n,) scores. Return the steps, and the value below all thresholds.

    Each round fits a step to the residual on a part of sentences and predictors (Friedman 2002, trees of one split).
    """
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(
        n_estimators=STEPS,
        learning_rate=LEARNING_RATE,
        max_depth=1,
        min_samples_leaf=MIN_SENTENCES_PER_SIDE,
        subsample=SENTENCE_FRACTION,
        max_features=PREDICTOR_FRACTION,
        init="zero",
        random_state=0,
    )
    mean = float(actual.mean())
    # Node 0 of a tree is its split, node 1 the side up to the threshold, node 2 the side above it.
    trees = [tree.tree_ for tree in model.fit(standardized, actual - mean).estimators_[:, 0]]
    lowest = mean + LEARNING_RATE * sum(float(tree.value[1 if tree.node_count > 1 else 0, 0, 0]) for tree in trees)
    split = [tree for tree in trees if tree.node_count > 1]
    steps = BoostedSteps(
        predictors=np.array([tree.feature[0] for tree in split], dtype=np.int64),
        thresholds=np.array([tree.threshold[0] for tree in split]),
        rises=LEARNING_RATE * np.array([float(tree.value[2, 0, 0] - tree.value[1, 0, 0]) for tree in split]),
    )
    return steps, lowest


def fit_logistic(names: Sequence[str], rows: Array, helped: Array) -> Regression:
    """Fit the log odds that a change helped by logistic regression.

    With fewer than `MIN_CASES` changes that helped, or that did not, the fit is the log odds of all changes, with 1
    added to both counts.

    Args:
        names: names of the P predictors.
        rows: (n, P) predictors of the changes.
        helped: (n,) 1 for a change that helped, else 0.
    """
    from sklearn.linear_model import LogisticRegression

    count = int(helped.sum())
    if min(count, len(helped) - count) < MIN_CASES:
        return _constant(names, float(np.log(count + 1) - np.log(len(helped) - count + 1)))
    means, deviations = _moments(rows)
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(_standardized(rows, means, deviations), helped)
    return Regression(tuple(names), means, deviations, model.coef_[0], float(model.intercept_[0]))


def probabilities(log_odds: Array) -> Array:
    """Return the probabilities (…) for log odds (…)."""
    from scipy.special import expit

    values: Array = expit(log_odds)
    return values


def _moments(rows: Array) -> tuple[Array, Array]:
    # The standard deviation of a constant column can be slightly above 0 by rounding.
    deviations = np.where(rows.max(axis=0) > rows.min(axis=0), rows.std(axis=0), 0)  # (P,)
    return rows.mean(axis=0), np.where(deviations > 0, deviations, 1)


def _standardized(rows: Array, means: Array, deviations: Array) -> Array:
    return np.clip((rows - means) / deviations, -MAX_DEVIATION, MAX_DEVIATION)  # (n, P)


def _constant(names: Sequence[str], value: float) -> Regression:
    zeros = np.zeros(len(names))
    return Regression(tuple(names), zeros, np.ones(len(names)), zeros, value)
