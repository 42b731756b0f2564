"""What a tuner gets, and what it gives back."""

from dataclasses import dataclass, field, replace

import numpy as np

from features.arrays import Array, Integers
from moses_io.errors import InputError, shown
from rerank.linear.candidates import Candidates, spread
from rerank.metrics.formula import Formula

MOST = 10**18
"""The largest number that a setting can be."""
MOST_TIMES = 10**6
"""The same of a setting that says how often something is done, or to how many."""


@dataclass(frozen=True)
class Problem:
    """Candidates with the statistics of each, the formula of a metric, and where to start.

    Attributes:
        candidates: of the tuning set.
        statistics: (N, formula.size).
        formula: of the best candidates' summed statistics.
        start: (size,) weights in the order of the feature space.
        lower: (size,) smallest weights allowed, or one number for all; a weight with lower = upper is frozen.
        upper: (size,) largest ones.
    """

    candidates: Candidates
    statistics: Array
    formula: Formula
    start: Array
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))

    def bounds(self) -> tuple[Array, Array]:
        """(size,) smallest and largest weights allowed."""
        shape = self.start.shape
        return np.broadcast_to(self.lower, shape), np.broadcast_to(self.upper, shape)  # (size,), (size,)

    def clip(self, weights: Array) -> Array:
        """Return the nearest weights that are allowed."""
        return np.clip(weights, self.lower, self.upper)

    def measure(self, weights: Array) -> float:
        """Return the metric, 0 … 1, of the candidates that the weights choose."""
        return float(self.formula.score(self.chosen(weights).sum(axis=0)))  # ()

    def chosen(self, weights: Array) -> Array:
        """(n, formula.size) statistics of the candidates that the weights choose."""
        best = self.candidates.best(self.candidates.scores(weights))
        return self.statistics[best]  # (n, formula.size)

    def spread(self) -> Array:
        """(dense,) standard deviation of each dense feature within sentences, pooled; 0 if constant there."""
        return spread(self.candidates.dense, self.candidates.offsets)

    def of(self, sentences: Integers) -> "Problem":
        """Return the problem of some of the sentences, by their place in the list."""
        statistics = self.statistics[self.candidates.rows_of(sentences)]  # (N, formula.size)
        return replace(self, candidates=self.candidates.of(sentences), statistics=statistics)


@dataclass(frozen=True)
class Tuned:
    """What a tuner gives back.

    Attributes:
        weights: (size,) in the order of the feature space.
        metric: 0 … 1, of the best candidates under these weights.
        runs: the same of each of several runs whose weights were averaged.
    """

    weights: Array
    metric: float
    runs: tuple[float, ...] = ()


def check_numbers(bound: int, whole: bool = False, above: bool = False, most: int = MOST, **settings: object) -> None:
    """Refuse settings that are not numbers from a bound, or `above` it, up to another one, or `whole` ones.

    Raises:
        InputError: a setting is something else.
    """
    expected = f"a {'whole ' if whole else ''}number {'above' if above else 'from'} {bound}"
    for name, value in settings.items():
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not (value > bound if above else value >= bound):
            raise InputError(f"{name}: expected {expected}, found {shown(value)}")
        if value > most:
            raise InputError(f"{name}: expected {expected} and at most {most:.0e}, found {shown(value)}")
