"""How well estimates fit what came out."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array

PARTS = 4
"""Into which sentences, and changes, are divided by what was estimated of them."""


@dataclass(frozen=True)
class Part:
    """Some sentences or changes: how many, and the means of what was estimated and of what came out."""

    count: int
    estimated: float
    reached: float


@dataclass(frozen=True)
class Fit:
    """How well the estimates of a set of sentences fit.

    Attributes:
        correlation: Pearson's, of expected scores with those that were reached.
        alone: the same of the best single predictor on dev, whatever its sign.
        quarters: of the sentences, the least sure first; scores 0 … 100.
        changes: the same of those that made a sentence better or worse; probabilities, and the share that helped.
    """

    correlation: float
    alone: float
    quarters: tuple[Part, ...]
    changes: tuple[Part, ...]


class Outcome(NamedTuple):
    """What was estimated of n sentences, and what came out.

    Attributes:
        expected: (n,) scores, 0 … 100.
        helped: (n,) probabilities that the change helped, nan where there was none.
        alone: (n,) values of the single predictor.
        reached: (n,) scores, 0 … 100.
        gains: (n,) the same minus those of Moses' choices.
    """

    expected: Array
    helped: Array
    alone: Array
    reached: Array
    gains: Array

    def fit(self) -> Fit:
        """Hold the one against the other."""
        decided = ~np.isnan(self.helped) & (self.gains != 0)  # (n,)
        return Fit(
            correlation=correlation(self.expected, self.reached),
            alone=abs(correlation(self.alone, self.reached)),
            quarters=parts(self.expected, self.reached),
            changes=parts(self.helped[decided], (self.gains[decided] > 0).astype(float)),
        )


def correlation(one: Array, other: Array) -> float:
    """Pearson's correlation of (n,) numbers with others; 0 where either does not vary."""
    if len(one) < 2 or min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])  # (2, 2)


def parts(estimated: Array, reached: Array) -> tuple[Part, ...]:
    """Divide sentences into `PARTS` of about one size, the lowest estimates first; less where they are few."""
    order = np.argsort(estimated, kind="stable")  # (n,)
    divided = np.array_split(order, PARTS)
    return tuple(
        Part(len(own), estimated=float(estimated[own].mean()), reached=float(reached[own].mean()))
        for own in divided
        if len(own)
    )
