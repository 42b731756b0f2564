"""What can be seen on the surface of a source and a candidate: copies, repetitions, numbers and punctuation.

Counts of what is wrong are negative, so that higher is better.
"""

import collections
import unicodedata
from collections.abc import Sequence

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence

Tokens = tuple[str, ...]


class _Surface:
    """One value for each candidate, by `value(source, hypothesis)`."""

    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = type(self).__name__.lower()

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, 1)."""
        return np.array(
            [[self.value(each.source, hypothesis)] for each in sentences for hypothesis in each.hypotheses],
            dtype=np.float64,
        ).reshape(-1, 1)

    def value(self, source: Tokens, hypothesis: Tokens) -> float:
        raise NotImplementedError


class Copied(_Surface):
    """The number of words that also stand in the source: names, and what Moses did not know. Punctuation is none."""

    def value(self, source: Tokens, hypothesis: Tokens) -> float:
        """Count tokens with a letter."""
        shared = collections.Counter(source) & collections.Counter(hypothesis)
        return sum(count for token, count in shared.items() if any(letter.isalpha() for letter in token))


class Repetition(_Surface):
    """Minus the number of words, pairs and triples that are the same as those right before them."""

    def value(self, source: Tokens, hypothesis: Tokens) -> float:
        """Compare each n-gram with the one that ends where it begins."""
        return -sum(
            hypothesis[start - size : start] == hypothesis[start : start + size]
            for size in (1, 2, 3)
            for start in range(size, len(hypothesis) - size + 1)
        )


class Numbers(_Surface):
    """Minus the number of numbers, in digits, that only one side has."""

    def value(self, source: Tokens, hypothesis: Tokens) -> float:
        """Compare the digits of tokens, so that 1.000 is 1,000."""
        return -_difference(*([_digits(token) for token in side if _digits(token)] for side in (source, hypothesis)))


class Punctuation(_Surface):
    """Minus the number of punctuation tokens that only one side has."""

    def value(self, source: Tokens, hypothesis: Tokens) -> float:
        """Compare tokens without a letter or digit."""
        return -_difference(*([token for token in side if _is_punctuation(token)] for side in (source, hypothesis)))


def _difference(left: Sequence[str], right: Sequence[str]) -> int:
    counts = collections.Counter(left), collections.Counter(right)
    return sum((counts[0] - counts[1]).values()) + sum((counts[1] - counts[0]).values())


def _digits(token: str) -> str:
    return "".join(letter for letter in token if letter.isdigit())


def _is_punctuation(token: str) -> bool:
    return all(unicodedata.category(letter)[0] in "PS" for letter in token)
