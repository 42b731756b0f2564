"""Pairwise ranked optimization (Hopkins & May 2011): a classifier learns which of two candidates is better."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from features.arrays import Array, Integers
from moses_io.files.errors import InputError
from rerank.tuners.problem import MOST_TIMES, Problem, Tuned, check_numbers


@dataclass(frozen=True)
class ProSettings:
    """Settings with the constants of Moses' pro; the classifier is scikit-learn's logistic regression.

    Attributes:
        pairs: random pairs that are looked at, a sentence.
        least: difference of the smoothed metric that a pair must have.
        kept: pairs with the largest differences that are learnt from, a sentence.
        ridge: of the weights' squares, beside the sum of the pairs' losses; the start has no part in it.
        seed: of the pairs.
    """

    pairs: int = 5000
    least: float = 0.05
    kept: int = 50
    ridge: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, whole=True, most=MOST_TIMES, pairs=self.pairs, kept=self.kept)
        check_numbers(0, whole=True, seed=self.seed)
        check_numbers(0, above=True, least=self.least, ridge=self.ridge)

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"pro|pairs:{self.pairs}|least:{self.least:g}|kept:{self.kept}|ridge:{self.ridge:g}|seed:{self.seed}"


def tune(problem: Problem, settings: ProSettings) -> Tuned:
    """Tune weights.

    Raises:
        InputError: no two candidates of a sentence differ enough.
    """
    better, worse = _sample(problem, settings)
    if not len(better):
        raise InputError(f"no two candidates of a sentence differ by {settings.least:g} in the metric")
    rows = problem.candidates.matrix()
    weights = classify(problem, rows[better] - rows[worse], settings)
    return Tuned(weights, problem.measure(weights))


def classify(problem: Problem, differences: csr_matrix, settings: ProSettings) -> Array:
    """Learn weights under which differences score above 0; one that ends beyond its bound is left out and put there."""
    from sklearn.linear_model import LogisticRegression

    kept = np.ones(len(problem.start), dtype=bool)
    while kept.any():
        columns, weights = differences[:, kept], problem.clip(np.zeros(len(kept)))  # (P, kept), (size,)
        both, answers = vstack([columns, -columns]), np.repeat([1, 0], columns.shape[0])  # (2 P, kept), (2 P,)
        classifier: Any = LogisticRegression(C=1 / settings.ridge, fit_intercept=False, max_iter=1000)
        weights[kept] = classifier.fit(both, answers).coef_[0]
        beyond = weights != problem.clip(weights)
        if not beyond.any():
            return weights
        kept &= ~beyond
    return problem.clip(np.zeros(len(kept)))


def _sample(problem: Problem, settings: ProSettings) -> tuple[Integers, Integers]:
    """(P,) the better and the worse candidate of each pair.

    The order of candidates in the list makes no difference, but for those whose dense features are equal.
    """
    rng = np.random.default_rng(settings.seed)
    metrics = problem.formula.smoothed(problem.statistics)  # (N,)
    dense, pairs = problem.candidates.dense, []
    for start, end in itertools.pairwise(problem.candidates.offsets):
        order = start + np.lexsort((*dense[start:end].T, metrics[start:end]))  # (candidates,)
        drawn = order[rng.integers(0, end - start, size=(settings.pairs, 2))]  # (pairs, 2)
        lead = metrics[drawn[:, 0]] - metrics[drawn[:, 1]]  # (pairs,)
        enough = np.flatnonzero(np.abs(lead) >= settings.least)  # (enough,)
        most = enough[np.argsort(-np.abs(lead[enough]), kind="stable")[: settings.kept]]  # (kept,)
        pairs.append(np.where(lead[most, None] > 0, drawn[most], drawn[most, ::-1]))  # (kept, 2)
    better, worse = np.concatenate(pairs).T  # (P,), (P,)
    return better, worse
