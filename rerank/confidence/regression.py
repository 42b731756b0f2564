"""Regressions on standardized predictors, as numbers that any program can evaluate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from rerank import __version__

LIMIT = 3.0
"""Standard deviations at which predictors are clipped, so that a strange sentence is not taken for a wonder."""

FEWEST = 10
"""Sentences, or changes that helped and others, below which the mean alone is told."""

PENALTIES = np.logspace(0, 4, 13)
"""Of ridge, of which leave-one-out errors choose."""

STRENGTH = 0.01
"""Of the logistic regression, the inverse of its penalty."""

STEPS, RATE, LEAF, SAMPLE, SEEN = 100, 0.08, 10, 0.5, 0.2
"""Of boosting: rounds, how much of each is kept, fewest sentences on a side of a step, and the shares of the sentences
and of the predictors that a round looks at."""

SIGNATURE = f"ridge+steps:{STEPS}|logistic:{STRENGTH}|clip:{LIMIT:g}|version:{__version__}"


class BoostedSteps(NamedTuple):
    """K steps: what is added, (K,), where the predictor of a number, (K,), is above a threshold, (K,), standardized."""

    predictors: Integers
    thresholds: Array
    rises: Array

    def values(self, standardized: Array) -> Array:
        """(n,) sums of what is added to n sentences with P predictors, (n, P)."""
        values: Array = (standardized[:, self.predictors] > self.thresholds) @ self.rises  # (n,)
        return values


NO_STEPS = BoostedSteps(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Regression:
    """A sum of standardized and clipped predictors, and of steps over them.

    Attributes:
        names: P of them, in the order of the rows that it takes.
        means: (P,) on dev.
        deviations: (P,) standard deviations on dev, 1 for a predictor that is constant there.
        coefficients: (P,) of the standardized predictors: how much each counts.
        intercept: the value of a sentence that is average in everything, and above no step.
        steps: over the predictors by their places in `names`.
    """

    names: tuple[str, ...]
    means: Array
    deviations: Array
    coefficients: Array
    intercept: float
    steps: BoostedSteps = NO_STEPS

    def values(self, rows: Array) -> Array:
        """(n,) values of the (n, P) predictors of sentences."""
        standardized = _standardized(rows, self.means, self.deviations)  # (n, P)
        values: Array = standardized @ self.coefficients + self.steps.values(standardized) + self.intercept  # (n,)
        return values


def fit_score(names: Sequence[str], rows: Array, reached: Array) -> Regression:
    """Fit what (n, P) sentences reached, (n,), by the mean of ridge regression and boosted steps; few by their mean."""
    from sklearn.linear_model import RidgeCV

    if len(rows) < FEWEST:
        return _constant(names, float(reached.mean()))
    means, deviations = _moments(rows)
    standardized = _standardized(rows, means, deviations)  # (n, P)
    # scikit-learn fits; `Regression` evaluates, so that a file holds numbers alone, and no pickle that could run code.
    ridge = RidgeCV(PENALTIES).fit(standardized, reached)
    steps, lowest = _boosted(standardized, reached)
    return Regression(
        names=tuple(names),
        means=means,
        deviations=deviations,
        coefficients=ridge.coef_ / 2,
        intercept=(float(ridge.intercept_) + lowest) / 2,
        steps=steps._replace(rises=steps.rises / 2),
    )


def _boosted(standardized: Array, reached: Array) -> tuple[BoostedSteps, float]:
    """Boost steps over (n, P) predictors for what was reached, (n,); return also what is below all of them.

    Each round adds the step that explains most of what is left (Friedman 2002, trees with one split).
    """
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(
        n_estimators=STEPS,
        learning_rate=RATE,
        max_depth=1,
        min_samples_leaf=LEAF,
        subsample=SAMPLE,
        max_features=SEEN,
        init="zero",
        random_state=0,
    )
    mean = float(reached.mean())
    trees = [tree.tree_ for tree in model.fit(standardized, reached - mean).estimators_[:, 0]]
    lowest = mean + RATE * sum(float(tree.value[1 if tree.node_count > 1 else 0, 0, 0]) for tree in trees)
    split = [tree for tree in trees if tree.node_count > 1]
    steps = BoostedSteps(
        predictors=np.array([tree.feature[0] for tree in split], dtype=np.int64),
        thresholds=np.array([tree.threshold[0] for tree in split]),
        rises=RATE * np.array([float(tree.value[2, 0, 0] - tree.value[1, 0, 0]) for tree in split]),
    )
    return steps, lowest


def fit_logistic(names: Sequence[str], rows: Array, helped: Array) -> Regression:
    """Fit which of the (n, P) changes helped, (n,) 1 or 0, as log odds; with few of either kind, their share."""
    from sklearn.linear_model import LogisticRegression

    count = int(helped.sum())
    if min(count, len(helped) - count) < FEWEST:
        return _constant(names, float(np.log(count + 1) - np.log(len(helped) - count + 1)))
    means, deviations = _moments(rows)
    model = LogisticRegression(C=STRENGTH, max_iter=1000).fit(_standardized(rows, means, deviations), helped)
    return Regression(tuple(names), means, deviations, model.coef_[0], float(model.intercept_[0]))


def probabilities(log_odds: Array) -> Array:
    """Return the probabilities (…) of log odds (…)."""
    from scipy.special import expit

    values: Array = expit(log_odds)
    return values


def _moments(rows: Array) -> tuple[Array, Array]:
    deviations = np.where(rows.max(axis=0) > rows.min(axis=0), rows.std(axis=0), 0)  # (P,)
    return rows.mean(axis=0), np.where(deviations > 0, deviations, 1)


def _standardized(rows: Array, means: Array, deviations: Array) -> Array:
    return np.clip((rows - means) / deviations, -LIMIT, LIMIT)  # (n, P)


def _constant(names: Sequence[str], value: float) -> Regression:
    zeros = np.zeros(len(names))
    return Regression(tuple(names), zeros, np.ones(len(names)), zeros, value)
