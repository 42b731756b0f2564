"""How far a tuning can be trusted: the gain of new features on sentences that the weights were not tuned on.

Moses' own weights were themselves tuned on this set, so that a comparison with them would flatter the old features on
folds and the new ones on the whole; the old features are tuned anew on the same folds instead.
"""

from dataclasses import dataclass, replace

import numpy as np

from features.progress import progress_bar
from moses_io.errors import InputError
from rerank.candidates import Array, Integers
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run

SAMPLES = 1000


@dataclass(frozen=True)
class Trust:
    """Metrics, 0 … 1, over all sentences, each with weights that were tuned on the other folds.

    Attributes:
        old: with the features that have a start weight.
        new: with all features.
        p: share of resampled sets of sentences on which the new features are no better (Koehn 2004).
    """

    old: float
    new: float
    p: float


def cross_validate(problem: Problem, tuning: Tuning, added: Integers, folds: int) -> Trust:
    """Compare all features with those that are not among the columns `added`, on folds.

    Raises:
        InputError: fewer sentences than folds.
    """
    sentences = len(problem.candidates.sentences)
    if not 2 <= folds <= sentences:
        raise InputError(f"folds: expected a whole number from 2 to the {sentences} sentences, found {folds}")
    order = np.random.default_rng(0).permutation(sentences)
    statistics = np.zeros((2, sentences, problem.metric.size))
    with progress_bar("folds", folds) as bar:
        for held in np.array_split(order, folds):
            others = np.setdiff1d(order, held)
            for number, given in enumerate((without(problem, added), problem)):
                weights = run(given.of(others), tuning).weights
                statistics[number, held] = _chosen(given.of(held), weights)
            bar.advance(1, "")
    old, new = problem.metric.score(statistics.sum(axis=1))
    return Trust(float(old), float(new), _p_value(problem, statistics))


def without(problem: Problem, columns: Integers) -> Problem:
    """Return the problem with 0 in some dense columns, and as their start weights."""
    dense, start = problem.candidates.dense.copy(), problem.start.copy()
    dense[:, columns], start[columns] = 0, 0
    return replace(problem, candidates=replace(problem.candidates, dense=dense), start=start)


def _chosen(problem: Problem, weights: Array) -> Array:
    """(n, metric.size) statistics of the candidates that the weights choose."""
    chosen: Array = problem.statistics[problem.candidates.best(problem.candidates.scores(weights))]
    return chosen


def _p_value(problem: Problem, statistics: Array) -> float:
    rng = np.random.default_rng(12345)
    sentences = statistics.shape[1]
    drawn = rng.integers(0, sentences, size=(SAMPLES, sentences))
    counts = np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(np.float64)
    old, new = (problem.metric.score(counts @ side) for side in statistics)
    return float((np.count_nonzero(new <= old) + 1) / (SAMPLES + 1))
