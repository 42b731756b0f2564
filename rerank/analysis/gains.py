"""Statistics of BLEU of the lines of two systems, and by how much the sentences of one are better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array
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


def statistics(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Return the (n, 9) statistics of BLEU of n lines of each system, by its name; all text has been filtered."""
    bleu = Metric("bleu")
    counters = [bleu.counter(answers) for answers in zip(*references, strict=True)]
    return {
        name: np.array([count(line) for count, line in zip(counters, lines, strict=True)], dtype=np.float64)  # (n, 9)
        for name, lines in systems.items()
    }


def find_gains(before: Array, after: Array) -> Gains:
    """Return how many of n sentences gained and lost how much, by their (n, 9) statistics of BLEU."""
    smoothed = Metric("bleu").formula.smoothed
    differences = 100 * (smoothed(after) - smoothed(before))  # (n,)
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
