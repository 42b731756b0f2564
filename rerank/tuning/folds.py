"""How far a tuning can be trusted: what features gain on sentences that the weights were not tuned on.

Moses' own weights were themselves tuned on this set, so that a comparison with them would flatter the old features on
folds and the new ones on the whole; the old features are tuned anew on the same folds instead.
"""

from dataclasses import dataclass, replace

import numpy as np

from features.progress import Bar, progress_bar
from moses_io.errors import InputError
from rerank.candidates import Array, Integers
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run

SAMPLES = 1000


@dataclass(frozen=True)
class Trust:
    """Metrics, 0 … 1, over all sentences, each with weights that were tuned on the other folds.

    Attributes:
        old: without the features in question.
        new: with all features.
        p: share of resampled sets of sentences on which all features are no better (Koehn 2004).
    """

    old: float
    new: float
    p: float


def cross_validate(problem: Problem, tuning: Tuning, columns: list[Integers], folds: int) -> list[Trust]:
    """Compare all features with those that are not among some columns, for each of several choices of columns.

    Raises:
        InputError: fewer sentences than folds.
    """
    sentences = len(problem.candidates.sentences)
    if not 2 <= folds <= sentences:
        raise InputError(f"folds: expected a whole number from 2 to the {sentences} sentences, found {folds}")
    with progress_bar("folds", folds * (1 + len(columns))) as bar:
        new = out_of_fold(problem, tuning, folds, bar)
        others = [out_of_fold(without(problem, each), tuning, folds, bar) for each in columns]
    score = problem.metric.score
    return [
        Trust(float(score(old.sum(axis=0))), float(score(new.sum(axis=0))), p_value(problem.metric, old, new))
        for old in others
    ]


def out_of_fold(problem: Problem, tuning: Tuning, folds: int, bar: Bar) -> Array:
    """(sentences, metric.size) statistics of what is chosen for each sentence by weights tuned on the other folds."""
    order = np.random.default_rng(0).permutation(len(problem.candidates.sentences))
    statistics = np.zeros((len(order), problem.metric.size))
    for held in np.array_split(order, folds):
        weights = run(problem.of(np.setdiff1d(order, held)), tuning, fold=True).weights
        rest = problem.of(held)
        statistics[held] = rest.statistics[rest.candidates.best(rest.candidates.scores(weights))]
        bar.advance(1, "")
    return statistics


def without(problem: Problem, columns: Integers) -> Problem:
    """Return the problem with 0 in some columns, and as their start weights."""
    candidates, start = problem.candidates, problem.start.copy()
    dense, size = candidates.dense.copy(), candidates.space.dense_size
    start[columns], dense[:, columns[columns < size]] = 0, 0
    lower, upper = (np.broadcast_to(bound, start.shape).copy() for bound in (problem.lower, problem.upper))
    lower[columns[columns < size]] = upper[columns[columns < size]] = 0
    kept = ~np.isin(candidates.sparse.columns + size, columns)
    sparse = replace(candidates.sparse, values=candidates.sparse.values * kept)
    return replace(
        problem, candidates=replace(candidates, dense=dense, sparse=sparse), start=start, lower=lower, upper=upper
    )


def p_value(metric: Metric, old: Array, new: Array) -> float:
    """Return the share of resampled sets on which new statistics (sentences, size) are no better than old ones."""
    rng = np.random.default_rng(12345)
    drawn = rng.integers(0, len(old), size=(SAMPLES, len(old)))
    counts = np.stack([np.bincount(row, minlength=len(old)) for row in drawn]).astype(np.float64)
    before, after = (metric.score(counts @ side) for side in (old, new))
    return float((np.count_nonzero(after <= before) + 1) / (SAMPLES + 1))
