"""Statistics of a feature on a Moses n-best list, with bootstrap errors over sentences, for experiments."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from tuning_cases import listed_problem, with_features

from features.arrays import Array, Integers
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.folds import FOLDS, fold_weights

TRIALS = 300
GRID = np.concatenate([[0], np.geomspace(0.1, 3, 12)])
"""Weights of a feature, relative to the spread of Moses' score."""


@dataclass(frozen=True)
class Statistic:
    """A statistic of a feature, with its values on the bootstrap samples of the sentences, (TRIALS,)."""

    value: float
    samples: Array

    @property
    def error(self) -> float:
        """Bootstrap standard error."""
        return float(np.std(self.samples))


class Set:
    """A Moses n-best list with values that all statistics need. `problem` has only Moses' features."""

    def __init__(self, data: Path, name: str, models: tuple[str, ...]) -> None:
        self.problem = listed_problem(data, name)
        self.values = {}  # each (N,)
        for model in models:
            with gzip.open(data / "scores" / f"{name}.{model}.gz") as stream:
                self.values[model] = np.array([float(line) for line in stream])  # (N,)
        self.size = len(self.problem.candidates.sentences)
        self.ids = np.repeat(np.arange(self.size), np.diff(self.problem.candidates.offsets))  # (N,)
        self.quality = self.problem.formula.smoothed(self.problem.statistics)  # (N,)
        rng = np.random.default_rng(0)
        self.trials = rng.multinomial(self.size, np.full(self.size, 1 / self.size), size=TRIALS).astype(float)

    def with_columns(self, *columns: Array) -> Problem:
        """Return the problem with additional features, each (N,)."""
        return with_features(self.problem, {f"New{number}": column for number, column in enumerate(columns)})

    def spread(self, values: Array) -> float:
        """Return the standard deviation of (N,) values within lists."""
        return float(self.with_columns(values).spread()[-1])

    def ranks(self, scores: Array) -> Integers:
        """Return the (N,) rank of each candidate in its list. The highest score has rank 0."""
        order = np.lexsort((-scores, self.ids))  # (N,)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - self.problem.candidates.offsets[self.ids]
        return ranks

    def gain(self, new: Array, old: Array) -> Statistic:
        """Return the gain of new over old (partitions, n, size) statistics, averaged over partitions."""
        score = self.problem.formula.score

        def difference(counts: Array) -> Array:
            pairs = zip(new, old, strict=True)
            return np.mean([100 * (score(counts @ one) - score(counts @ other)) for one, other in pairs], axis=0)

        return Statistic(float(difference(np.ones(self.size))), difference(self.trials))

    def ratio(self, sums: Array, of: Callable[[Array], Array]) -> Statistic:
        """Return a function of column sums, with its bootstrap.

        Args:
            sums: (rows, k + 1) values to sum, with the index of the sentence in the last column.
            of: function of the k sums, also of (TRIALS, k) sums.
        """
        ids = sums[:, -1].astype(np.int64)
        by_sentence = np.column_stack([np.bincount(ids, each, self.size) for each in sums.T[:-1]])  # (n, k)
        return Statistic(float(of(by_sentence.sum(axis=0))), of(self.trials @ by_sentence))


def folds(problem: Problem, tuning: Tuning, seed: int) -> Array:
    """Return (n, size) cross-validated statistics, with a random partition of the sentences."""
    order = np.random.default_rng(seed).permutation(len(problem.candidates.sentences))  # (n,)
    statistics = np.empty((len(order), problem.formula.size))
    shuffled = problem.subset(order)
    for fold, weights in fold_weights(shuffled, tuning, FOLDS):
        statistics[order[fold]] = shuffled.subset(fold).chosen(weights)  # (fold, size)
    return statistics


def centred(values: Array, ids: Integers) -> Array:
    """Return (N, k) values minus the mean of their list."""
    counts = np.maximum(np.bincount(ids), 1)  # (n,)
    means = np.column_stack([np.bincount(ids, each) / counts for each in values.T])  # (n, k)
    return values - means[ids]


def basis(matrix: Array) -> Array:
    """Return (N, rank) orthonormal columns that span the columns of a matrix."""
    columns, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return columns[:, sizes > 1e-8 * sizes[0]]


def correlations_in_lists(on: Set, features: dict[str, Array]) -> dict[str, Statistic]:
    """Return the rank correlation with sentence BLEU of each feature's residuals after a fit of Moses' features.

    Moses' features are fitted in each list of at least 40 candidates. The correlations are averaged over these lists.
    """
    offsets, rows = on.problem.candidates.offsets, {name: np.full(on.size, np.nan) for name in features}
    for sentence in np.flatnonzero(np.diff(offsets) >= 40):
        span = slice(offsets[sentence], offsets[sentence + 1])
        moses = basis(np.column_stack([np.ones(span.stop - span.start), on.problem.candidates.dense[span]]))
        quality = rankdata(on.quality[span] - moses @ (moses.T @ on.quality[span]))
        for name, values in features.items():
            residuals = rankdata(values[span] - moses @ (moses.T @ values[span]))
            varies = np.ptp(residuals) and np.ptp(quality)
            rows[name][sentence] = np.corrcoef(residuals, quality)[0, 1] if varies else 0.0
    return {name: _mean_of_values(on, row) for name, row in rows.items()}


def _mean_of_values(on: Set, row: Array) -> Statistic:
    """Return the mean over the sentences that have a value (not NaN)."""
    known = ~np.isnan(row)
    return Statistic(float(row[known].mean()), on.trials[:, known] @ row[known] / on.trials[:, known].sum(axis=1))


class Top:
    """The top candidates of each list under Moses' weights, with the residual of BLEU after a fit of Moses' features.

    Moses' features are fitted once for all lists, because tuning also finds one set of weights for all lists.
    """

    def __init__(self, on: Set, ranks: Integers, last: int) -> None:
        self.on, self.rows, self.ranks = on, np.flatnonzero(ranks < last), ranks
        self.ids = on.ids[self.rows]
        self._moses = basis(centred(on.problem.candidates.dense[self.rows], self.ids))  # (rows, rank)
        self._quality = self.residual(on.quality)  # (rows,)

    def residual(self, values: Array) -> Array:
        """Return the (rows,) residuals of (N,) values after a fit of Moses' features."""
        own = centred(values[self.rows][:, None], self.ids)[:, 0]  # (rows,)
        rest: Array = own - self._moses @ (self._moses.T @ own)
        return rest

    def correlation(self, values: Array) -> Statistic:
        """Return the correlation of the residuals of values and of sentence BLEU."""
        residuals, quality = self.residual(values), self._quality
        sums = np.column_stack([residuals * quality, residuals**2, quality**2, self.ids])  # (rows, 4)
        return self.on.ratio(sums, lambda sums: sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2]))

    def pairs(self, values: Array) -> Statistic:
        """Return how often residuals prefer the better candidate in pairs of Moses' choice and another candidate."""
        residuals = self.residual(values)
        first = np.flatnonzero(self.ranks[self.rows] == 0)[self.ids]  # (rows,)
        quality = self.on.quality[self.rows]
        unequal = quality != quality[first]
        right = (residuals - residuals[first]) * (quality - quality[first]) > 0
        sums = np.column_stack([right, np.ones(len(right)), self.ids])[unequal]  # (pairs, 3)
        return self.on.ratio(sums, lambda sums: sums[..., 0] / sums[..., 1])


def soft(problem: Problem, scores: Array) -> Array:
    """Return (n, size) expected statistics under the softmax of the scores."""
    starts, counts = problem.candidates.offsets[:-1], np.diff(problem.candidates.offsets)
    probabilities = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), counts))  # (N,)
    probabilities /= np.repeat(np.add.reduceat(probabilities, starts), counts)
    expected: Array = np.add.reduceat(probabilities[:, None] * problem.statistics, starts, axis=0)  # (n, size)
    return expected


def standardized(problem: Problem, weights: Array) -> Array:
    """Return (N,) scores divided by their spread within lists."""
    scores = problem.candidates.scores(weights)  # (N,)
    scaled: Array = scores / problem.candidates.spread_of(scores)
    return scaled


def gain_alone(on: Set, values: Array, scores: Array, choose: Callable[[Array], Array]) -> Statistic:
    """Return the gain with the best weight of the feature, if Moses' weights stay unchanged."""
    chosen = [choose(scores + weight * values / on.spread(values)) for weight in GRID]  # each (n, size)
    best = int(np.argmax([on.problem.formula.score(each.sum(axis=0)) for each in chosen]))
    return on.gain(chosen[best][None], chosen[0][None])


def hard(problem: Problem, scores: Array) -> Array:
    """Return (n, size) statistics of the candidates with the highest scores."""
    return problem.statistics[problem.candidates.best(scores)]  # (n, size)
