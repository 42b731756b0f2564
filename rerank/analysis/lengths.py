"""BLEU of systems by the length of the source sentence (Luong et al. 2015, 4.2)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from features.arrays import Array
from moses_io.text import tokens
from rerank.analysis.bleu import corpus_bleu

FEWEST = 20
"""Sentences of a bin, at least, where there are as many."""
MOST = 8
"""Bins, at most."""


@dataclass(frozen=True)
class Bin:
    """Sentences whose sources are about as long."""

    lower: int  # tokens of the shortest source
    upper: int  # and of the longest
    sentences: int
    scores: dict[str, float]  # by system, BLEU of these sentences as a corpus, 0 to 100

    @property
    def span(self) -> str:
        """The lengths in words, such as `5-7`."""
        return f"{self.lower}" if self.lower == self.upper else f"{self.lower}-{self.upper}"


def by_length(source: Sequence[str], systems: Mapping[str, Array]) -> list[Bin]:
    """Return, from short to long, bins of about equally many sentences, each `FEWEST` at least.

    Sentences of one length are in one bin; a set of fewer than twice `FEWEST` sentences has a single one.

    Args:
        source: n sentences, as tokens with spaces between.
        systems: of each system the (n, 9) statistics of BLEU of its lines, by its name.
    """
    lengths = np.array([len(tokens(line)) for line in source])  # (n,)
    bins = []
    for lower, upper in _bounds(Counter(lengths.tolist())):
        inside = (lengths >= lower) & (lengths <= upper)  # (n,)
        scores = {name: corpus_bleu(rows[inside].sum(axis=0)) for name, rows in systems.items()}
        bins.append(Bin(lower=lower, upper=upper, sentences=int(inside.sum()), scores=scores))
    return bins


def _bounds(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the shortest and the longest length of each bin, where `counts` says how many sentences a length has."""
    enough = max(FEWEST, math.ceil(sum(counts.values()) / MOST))
    ordered, starts, filled = sorted(counts), list[int](), enough
    for place, length in enumerate(ordered):
        if filled >= enough:
            starts.append(place)
            filled = 0
        filled += counts[length]
    if len(starts) > 1 and filled < FEWEST:
        starts.pop()
    return [(ordered[start], ordered[end - 1]) for start, end in pairwise([*starts, len(ordered)])]
