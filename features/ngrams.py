"""Counts of n-grams, which metrics and consensus features both read."""

import collections
from collections.abc import Iterable, Sequence

ORDER = 4

Ngram = tuple[str, ...]
Ngrams = collections.Counter[Ngram]


def count_ngrams(tokens: Sequence[str], order: int = ORDER) -> Ngrams:
    """Count the n-grams of 1 … `order` tokens."""
    return collections.Counter(
        tuple(tokens[start : start + length])
        for length in range(1, order + 1)
        for start in range(len(tokens) - length + 1)
    )


def by_length(values: Iterable[tuple[Ngram, float]], order: int = ORDER) -> list[float]:
    """Sum values of n-grams of 1 … `order` tokens, those of each length apart."""
    sums = [0.0] * order
    for ngram, value in values:
        sums[len(ngram) - 1] += value
    return sums
