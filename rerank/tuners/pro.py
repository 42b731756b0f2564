"""Pairwise ranked optimization (PRO, Hopkins & May 2011): a classifier learns which of two candidates is better."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from features.arrays import Array, Integers
from moses_io.files.errors import InputError
from rerank.tuners.problem import MAX_COUNT, Problem, Tuned, check_numbers


@dataclass(frozen=True)
class ProSettings:
    """Settings of the tuner `pro`. The defaults are the constants of Moses' pro.

    The classifier is scikit-learn's logistic regression. It does not use the initial weights.

    Attributes:
        pairs: number of random pairs per sentence.
        min_difference: minimum difference in the smoothed metric of a pair.
        max_pairs: maximum number of training pairs per sentence, the ones with the largest differences.
        ridge: weight of the L2 penalty on the weights, relative to the sum of the losses of the pairs.
        seed: random seed for the pairs.
    """

    pairs: int = 5000
    min_difference: float = 0.05
    max_pairs: int = 50
    ridge: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, integer=True, maximum=MAX_COUNT, pairs=self.pairs, max_pairs=self.max_pairs)
        check_numbers(0, integer=True, seed=self.seed)
        check_numbers(0, exclusive=True, min_difference=self.min_difference, ridge=self.ridge)

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        pairs = f"pairs:{self.pairs}|min_difference:{self.min_difference:g}|max_pairs:{self.max_pairs}"
        return f"pro|{pairs}|ridge:{self.ridge:g}|seed:{self.seed}"


def tune(problem: Problem, settings: ProSettings) -> Tuned:
    """Tune weights by classification of candidate pairs.

    Raises:
        InputError: no pair of candidates differs by at least `min_difference` in the metric.
    """
    better, worse = _sample(problem, settings)
    if not len(better):
        raise InputError(f"no two candidates of a sentence differ by {settings.min_difference:g} in the metric")
    rows = problem.candidates.matrix()
    weights = classify(problem, rows[better] - rows[worse], settings)
    return Tuned(weights, problem.measure(weights))


def classify(problem: Problem, differences: csr_matrix, settings: ProSettings) -> Array:
    """Return (size,) weights under which differences (better minus worse) score above 0.

    A weight that ends outside its bounds is set to the allowed value nearest to 0. The others are then learned again
    without its feature.

    Args:
        problem: the problem with the bounds.
        differences: (P, size) feature differences of the pairs.
        settings: settings of the tuner.
    """
    from sklearn.linear_model import LogisticRegression

    kept = np.ones(len(problem.initial), dtype=bool)
    while kept.any():
        columns, weights = differences[:, kept], problem.clip(np.zeros(len(kept)))  # (P, kept), (size,)
        rows, labels = vstack([columns, -columns]), np.repeat([1, 0], columns.shape[0])  # (2 P, kept), (2 P,)
        classifier: Any = LogisticRegression(C=1 / settings.ridge, fit_intercept=False, max_iter=1000)
        weights[kept] = classifier.fit(rows, labels).coef_[0]
        out_of_bounds = weights != problem.clip(weights)
        if not out_of_bounds.any():
            return weights
        kept &= ~out_of_bounds
    return problem.clip(np.zeros(len(kept)))


def _sample(problem: Problem, settings: ProSettings) -> tuple[Integers, Integers]:
    """Return the (P,) better and the (P,) worse candidates of the pairs.

    The sample does not depend on the order of the candidates in the list, except for equal dense features.
    """
    rng = np.random.default_rng(settings.seed)
    metrics = problem.formula.smoothed(problem.statistics)  # (N,)
    dense, pairs = problem.candidates.dense, []
    for start, end in itertools.pairwise(problem.candidates.offsets):
        order = start + np.lexsort((*dense[start:end].T, metrics[start:end]))  # (candidates,)
        drawn = order[rng.integers(0, end - start, size=(settings.pairs, 2))]  # (pairs, 2)
        lead = metrics[drawn[:, 0]] - metrics[drawn[:, 1]]  # (pairs,)
        enough = np.flatnonzero(np.abs(lead) >= settings.min_difference)  # (enough,)
        selected = enough[np.argsort(-np.abs(lead[enough]), kind="stable")[: settings.max_pairs]]  # (kept,)
        pairs.append(np.where(lead[selected, None] > 0, drawn[selected], drawn[selected, ::-1]))  # (kept, 2)
    better, worse = np.concatenate(pairs).T  # (P,), (P,)
    return better, worse
