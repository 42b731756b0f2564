"""What every tuner is given, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moses_io.errors import InputError
from rerank.candidates import Array, Candidates, Integers
from rerank.metrics.metric import Metric


@dataclass(frozen=True)
class Problem:
    """Candidates with the statistics of each, a metric of these, and where to start.

    Attributes:
        candidates: of the tuning set.
        statistics: (N, metric.size).
        metric: of the best candidates' summed statistics.
        start: (size,) weights in the order of the feature space.
        lower: (size,) smallest weights allowed, or one number for all; a weight with lower = upper is frozen.
        upper: (size,) largest ones.
    """

    candidates: Candidates
    statistics: Array
    metric: Metric
    start: Array
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))

    def clip(self, weights: Array) -> Array:
        """Return the nearest weights that are allowed."""
        return np.clip(weights, self.lower, self.upper)

    def measure(self, weights: Array) -> float:
        """Return the metric, 0 … 1, of the candidates that the weights choose."""
        chosen = self.candidates.best(self.candidates.scores(weights))
        return float(self.metric.score(self.statistics[chosen].sum(axis=0)))

    def spread(self) -> Array:
        """(dense,) standard deviation of each dense feature within sentences, pooled; 0 if constant there."""
        dense, starts = self.candidates.dense, self.candidates.offsets[:-1]
        counts = np.diff(self.candidates.offsets)
        varies = (np.maximum.reduceat(dense, starts) > np.minimum.reduceat(dense, starts)).any(axis=0)
        means = np.add.reduceat(dense, starts) / counts[:, None]
        within = dense - np.repeat(means, counts, axis=0)
        spread: Array = np.sqrt((within**2).mean(axis=0)) * varies
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


def check_numbers(settings: object, whole: Mapping[str, int], above: Sequence[str], least: Sequence[str] = ()) -> None:
    """Refuse settings that are not numbers as they should be.

    Args:
        settings: whose attributes are looked at.
        whole: the smallest whole number of each that is one.
        above: names of numbers above 0.
        least: names of numbers from 0.

    Raises:
        InputError: a setting is something else.
    """
    for name, smallest in whole.items():
        found = getattr(settings, name)
        if not isinstance(found, int) or found < smallest:
            raise InputError(f"{name}: expected a whole number from {smallest}, found {found!r}")
    for name in above:
        found = getattr(settings, name)
        if not (isinstance(found, (int, float)) and found > 0):
            raise InputError(f"{name}: expected a number above 0, found {found!r}")
    for name in least:
        found = getattr(settings, name)
        if not (isinstance(found, (int, float)) and found >= 0):
            raise InputError(f"{name}: expected a number from 0, found {found!r}")
