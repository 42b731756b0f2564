"""Counts of n-grams of tokens."""

import collections
from collections.abc import Iterable, Sequence

ORDER = 4

Ngram = tuple[str, ...]
Ngrams = collections.Counter[Ngram]


def count_ngrams(tokens: Sequence[str]) -> Ngrams:
    """Count the n-grams of 1 … `ORDER` tokens."""
    return collections.Counter(
        tuple(tokens[start : start + length])
        for length in range(1, ORDER + 1)
        for start in range(len(tokens) - length + 1)
    )


def by_length(values: Iterable[tuple[Ngram, float]]) -> list[float]:
    """Sum values of n-grams of 1 … `ORDER` tokens, those of each length apart."""
    sums = [0.0] * ORDER
    for ngram, value in values:
        sums[len(ngram) - 1] += value
    return sums
