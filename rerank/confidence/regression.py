"""Regressions on standardized predictors, ridge and logistic, as numbers that any program can evaluate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from rerank import __version__

LIMIT = 3.0
"""Standard deviations at which predictors are clipped, so that a strange sentence is not taken for a wonder."""

FEWEST = 10
"""Sentences, or changes that helped and others, below which the mean alone is told."""

PENALTIES = np.logspace(0, 4, 13)
"""Of ridge, of which leave-one-out errors choose."""

STRENGTH = 0.01
"""Of the logistic regression, the inverse of its penalty; see docs/tuning.md."""

SIGNATURE = f"ridge|logistic:{STRENGTH}|clip:{LIMIT:g}|version:{__version__}"


@dataclass(frozen=True)
class Regression:
    """A sum of standardized and clipped predictors.

    Attributes:
        names: P of them, in the order of the rows that it takes.
        means: (P,) on dev.
        deviations: (P,) standard deviations on dev, 1 for a predictor that is constant there.
        coefficients: (P,) of the standardized predictors: how much each counts.
        intercept: the value of a sentence that is average in everything.
    """

    names: tuple[str, ...]
    means: Array
    deviations: Array
    coefficients: Array
    intercept: float

    def values(self, rows: Array) -> Array:
        """(n,) values of the (n, P) predictors of sentences."""
        values: Array = _standardized(rows, self.means, self.deviations) @ self.coefficients + self.intercept  # (n,)
        return values


def fit_ridge(names: Sequence[str], rows: Array, reached: Array) -> Regression:
    """Fit what (n, P) sentences reached, (n,); with few of them, their mean."""
    from sklearn.linear_model import RidgeCV

    if len(rows) < FEWEST:
        return _constant(names, float(reached.mean()))
    means, deviations = _moments(rows)
    model = RidgeCV(PENALTIES).fit(_standardized(rows, means, deviations), reached)
    return Regression(tuple(names), means, deviations, model.coef_, float(model.intercept_))


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
    varies = rows.max(axis=0) > rows.min(axis=0)  # (P,)
    return rows.mean(axis=0), np.where(varies, rows.std(axis=0), 1)


def _standardized(rows: Array, means: Array, deviations: Array) -> Array:
    return np.clip((rows - means) / deviations, -LIMIT, LIMIT)  # (n, P)


def _constant(names: Sequence[str], value: float) -> Regression:
    zeros = np.zeros(len(names))
    return Regression(tuple(names), zeros, np.ones(len(names)), zeros, value)
