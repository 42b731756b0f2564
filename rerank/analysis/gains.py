"""By how much the sentences of one system are better than those of another."""

from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric

WIDTH = 10
"""Points of sentence BLEU that a bin of differences has."""


@dataclass(frozen=True)
class Gains:
    """Differences of smoothed sentence BLEU, after minus before.

    Attributes:
        lower: the lower bounds of bins, `WIDTH` wide, from -100.
        counts: sentences in each bin, those without a difference left out.
        rose: sentences in all whose BLEU rose.
        fell: that fell.
        stayed: that stayed as they were.
    """

    lower: tuple[int, ...]
    counts: tuple[int, ...]
    rose: int
    fell: int
    stayed: int


def find_gains(before: Array, after: Array) -> Gains:
    """Return how many of n sentences gained and lost how much, by their (n, 9) statistics of BLEU."""
    smoothed = Metric("bleu").formula.smoothed
    differences = 100 * np.round(smoothed(after) - smoothed(before), DECIMALS)  # (n,)
    changed = differences[differences != 0]  # (changed,)
    edges = np.arange(-100, 101, WIDTH)
    counts, _ = np.histogram(changed, edges)
    rose = int((changed > 0).sum())
    return Gains(
        lower=tuple(edges[:-1].tolist()),
        counts=tuple(counts.tolist()),
        rose=rose,
        fell=len(changed) - rose,
        stayed=len(differences) - len(changed),
    )
