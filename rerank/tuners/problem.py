"""What every tuner is given, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_io.errors import InputError
from rerank.candidates import Array, Candidates, Integers
from rerank.metrics import Metric


@dataclass(frozen=True)
class Problem:
    """Candidates with the statistics of each, a metric of these, and where to start.

    Attributes:
        candidates: of the tuning set.
        statistics: (N, metric.size).
        metric: of the best candidates' summed statistics.
        start: (size,) weights in the order of the feature space.
    """

    candidates: Candidates
    statistics: Array
    metric: Metric
    start: Array

    def measure(self, weights: Array) -> float:
        """Return the metric, 0 … 1, of the candidates that the weights choose."""
        chosen = self.candidates.best(self.candidates.scores(weights))
        return float(self.metric.score(self.statistics[chosen].sum(axis=0)))

    def spread(self) -> Array:
        """(size,) standard deviation of each feature within sentences, pooled over all of them."""
        candidates = self.candidates
        counts = np.diff(candidates.offsets)
        share = np.repeat(1 / counts, counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        means = np.add.reduceat(candidates.dense * share[:, None], candidates.offsets[:-1])
        dense = ((candidates.dense - means[owner]) ** 2).sum(axis=0)
        sparse, owners = candidates.sparse, np.repeat(owner, np.diff(candidates.sparse.offsets))
        keys, places = np.unique(owners * max(1, len(candidates.space.sparse)) + sparse.columns, return_inverse=True)
        sums, squares = np.bincount(places, weights=sparse.values), np.bincount(places, weights=sparse.values**2)
        within = squares - sums**2 / counts[keys // max(1, len(candidates.space.sparse))]
        columns = keys % max(1, len(candidates.space.sparse))
        total = np.bincount(columns, weights=within, minlength=len(candidates.space.sparse))
        spread: Array = np.sqrt(np.concatenate([dense, np.maximum(total, 0)]) / max(1, len(candidates.dense)))
        return spread

    def of(self, sentences: Integers) -> "Problem":
        """Return the problem of some of the sentences, by their place in the list."""
        rows = self.candidates.rows_of(sentences)
        return replace(self, candidates=self.candidates.of(sentences), statistics=self.statistics[rows])


@dataclass(frozen=True)
class Tuned:
    """What a tuner found.

    Attributes:
        weights: (size,) in the order of the feature space.
        metric: 0 … 1, of the best candidates under these weights.
        start: the same under the start weights.
    """

    weights: Array
    metric: float
    start: float


def check_numbers(settings: object, whole: Mapping[str, int], above: Sequence[str]) -> None:
    """Refuse settings that are no whole numbers from a smallest one, or no numbers above 0, with an `InputError`."""
    for name, smallest in whole.items():
        found = getattr(settings, name)
        if not isinstance(found, int) or found < smallest:
            raise InputError(f"{name}: expected a whole number from {smallest}, found {found!r}")
    for name in above:
        found = getattr(settings, name)
        if not (isinstance(found, (int, float)) and found > 0):
            raise InputError(f"{name}: expected a number above 0, found {found!r}")
