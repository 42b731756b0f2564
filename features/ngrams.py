"""Counts of n-grams, which metrics and consensus features both read."""

import collections
from collections.abc import Sequence

ORDER = 4

Ngrams = collections.Counter[tuple[str, ...]]


def count_ngrams(tokens: Sequence[str], order: int = ORDER) -> Ngrams:
    """Count the n-grams of 1 … `order` tokens."""
    return collections.Counter(
        tuple(tokens[start : start + length])
        for length in range(1, order + 1)
        for start in range(len(tokens) - length + 1)
    )
