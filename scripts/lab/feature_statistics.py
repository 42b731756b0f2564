"""Statistics of a feature on a list of Moses, each with its bootstrap over sentences; for experiments."""

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
"""Weights of a feature, in shares of the spread of Moses' score."""


@dataclass(frozen=True)
class Statistic:
    """A statistic of a feature, and the same on each bootstrap sample of the sentences, (TRIALS,)."""

    value: float
    samples: Array

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.std(self.samples))


class Set:
    """A list of Moses with what is the same for all features; `problem` has Moses' features alone."""

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

    def beside(self, *columns: Array) -> Problem:
        """Return the problem with more features, each (N,)."""
        return with_features(self.problem, {f"New{place}": column for place, column in enumerate(columns)})

    def spread(self, values: Array) -> float:
        """Return the standard deviation within lists."""
        return float(self.beside(values).spread()[-1])

    def places(self, scores: Array) -> Integers:
        """(N,) place of each candidate in its list, the highest score first."""
        order = np.lexsort((-scores, self.ids))  # (N,)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - self.problem.candidates.offsets[self.ids]
        return places

    def gain(self, new: Array, old: Array) -> Statistic:
        """Compare (partitions, n, size) statistics of what is chosen; metrics are averaged over partitions."""
        score = self.problem.formula.score

        def difference(shares: Array) -> Array:
            pairs = zip(new, old, strict=True)
            return np.mean([100 * (score(shares @ one) - score(shares @ other)) for one, other in pairs], axis=0)

        return Statistic(float(difference(np.ones(self.size))), difference(self.trials))

    def ratio(self, sums: Array, of: Callable[[Array], Array]) -> Statistic:
        """Return a function of sums of the first columns of (rows, k + 1); the last has the place of the sentence."""
        ids = sums[:, -1].astype(np.int64)
        by_sentence = np.column_stack([np.bincount(ids, each, self.size) for each in sums.T[:-1]])  # (n, k)
        return Statistic(float(of(by_sentence.sum(axis=0))), of(self.trials @ by_sentence))


def folds(problem: Problem, tuning: Tuning, seed: int) -> Array:
    """(n, size) statistics out of fold, on a partition of the sentences of its own."""
    order = np.random.default_rng(seed).permutation(len(problem.candidates.sentences))  # (n,)
    statistics = np.empty((len(order), problem.formula.size))
    shuffled = problem.of(order)
    for held, weights in fold_weights(shuffled, tuning, FOLDS):
        statistics[order[held]] = shuffled.of(held).chosen(weights)  # (held, size)
    return statistics


def centred(values: Array, ids: Integers) -> Array:
    """Subtract the means of lists from (N, k) values."""
    counts = np.maximum(np.bincount(ids), 1)  # (n,)
    means = np.column_stack([np.bincount(ids, each) / counts for each in values.T])  # (n, k)
    return values - means[ids]


def basis(matrix: Array) -> Array:
    """(N, rank) orthonormal columns that span those of a matrix."""
    columns, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return columns[:, sizes > 1e-8 * sizes[0]]


def correlations_in_lists(on: Set, many: dict[str, Array]) -> dict[str, Statistic]:
    """Rank correlation with sentence BLEU of what Moses' features leave: mean of fits in each list of 40 or more."""
    offsets, rows = on.problem.candidates.offsets, {name: np.full(on.size, np.nan) for name in many}
    for sentence in np.flatnonzero(np.diff(offsets) >= 40):
        here = slice(offsets[sentence], offsets[sentence + 1])
        moses = basis(np.column_stack([np.ones(here.stop - here.start), on.problem.candidates.dense[here]]))
        quality = rankdata(on.quality[here] - moses @ (moses.T @ on.quality[here]))
        for name, values in many.items():
            left = rankdata(values[here] - moses @ (moses.T @ values[here]))
            rows[name][sentence] = np.corrcoef(left, quality)[0, 1] if np.ptp(left) and np.ptp(quality) else 0.0
    return {name: _mean(on, row) for name, row in rows.items()}


def _mean(on: Set, row: Array) -> Statistic:
    """Mean of what there is of a number a sentence."""
    there = ~np.isnan(row)
    return Statistic(float(row[there].mean()), on.trials[:, there] @ row[there] / on.trials[:, there].sum(axis=1))


class Top:
    """The candidates of each list up to a place under Moses' weights, and what Moses' features leave of their BLEU.

    Moses' features are fitted once for all lists, as one set of weights will have to serve them all.
    """

    def __init__(self, on: Set, places: Integers, last: int) -> None:
        self.on, self.rows, self.places = on, np.flatnonzero(places < last), places
        self.ids = on.ids[self.rows]
        self._moses = basis(centred(on.problem.candidates.dense[self.rows], self.ids))  # (rows, rank)
        self._quality = self.left(on.quality)  # (rows,)

    def left(self, values: Array) -> Array:
        """(rows,) what Moses' features leave of (N,) values."""
        own = centred(values[self.rows][:, None], self.ids)[:, 0]  # (rows,)
        rest: Array = own - self._moses @ (self._moses.T @ own)
        return rest

    def correlation(self, values: Array) -> Statistic:
        """Correlation with sentence BLEU of what is left of both."""
        left, quality = self.left(values), self._quality
        sums = np.column_stack([left * quality, left**2, quality**2, self.ids])  # (rows, 4)
        return self.on.ratio(sums, lambda sums: sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2]))

    def pairs(self, values: Array) -> Statistic:
        """How often what is left prefers the better one of Moses' choice and another candidate."""
        left = self.left(values)
        first = np.flatnonzero(self.places[self.rows] == 0)[self.ids]  # (rows,)
        quality = self.on.quality[self.rows]
        unequal = quality != quality[first]
        right = (left - left[first]) * (quality - quality[first]) > 0
        sums = np.column_stack([right, np.ones(len(right)), self.ids])[unequal]  # (pairs, 3)
        return self.on.ratio(sums, lambda sums: sums[..., 0] / sums[..., 1])


def soft(problem: Problem, scores: Array) -> Array:
    """(n, size) statistics expected under softmax of scores."""
    starts, counts = problem.candidates.offsets[:-1], np.diff(problem.candidates.offsets)
    shares = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), counts))  # (N,)
    shares /= np.repeat(np.add.reduceat(shares, starts), counts)
    expected: Array = np.add.reduceat(shares[:, None] * problem.statistics, starts, axis=0)  # (n, size)
    return expected


def standardized(problem: Problem, weights: Array) -> Array:
    """(N,) scores in units of their spread within lists."""
    scores = problem.candidates.scores(weights)  # (N,)
    scaled: Array = scores / problem.candidates.spread_of(scores)
    return scaled


def along(on: Set, values: Array, scores: Array, choose: Callable[[Array], Array]) -> Statistic:
    """Gain by the best weight of the feature alone, Moses' weights as they are."""
    chosen = [choose(scores + weight * values / on.spread(values)) for weight in GRID]  # each (n, size)
    best = int(np.argmax([on.problem.formula.score(each.sum(axis=0)) for each in chosen]))
    return on.gain(chosen[best][None], chosen[0][None])


def hard(problem: Problem, scores: Array) -> Array:
    """(n, size) statistics of the candidates that score highest."""
    return problem.statistics[problem.candidates.best(scores)]  # (n, size)
