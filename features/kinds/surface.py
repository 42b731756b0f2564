"""What can be seen on the surface of a source and a candidate: length, copies, repetitions, numbers and punctuation.

Counts of what is wrong are negative, so that higher is better. Characters that Moses' tokenizer escaped count as what
they are.
"""

import collections
import math
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from features.feature import CandidateFeature, Resources
from moses_io.files.errors import InputError
from moses_io.files.streams import digest
from moses_io.files.text import read_parallel, tokens, unescaped

Tokens = tuple[str, ...]


class _Surface(CandidateFeature):
    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = type(self).__name__.lower()


class Copied(_Surface):
    """The number of words that also stand in the source: names, and what Moses did not know. Punctuation is none."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Count tokens with a letter."""
        shared = collections.Counter(source) & collections.Counter(hypothesis)
        return [sum(count for token, count in shared.items() if any(map(str.isalpha, unescaped(token))))]


class Repetition(_Surface):
    """Minus the number of words, pairs and triples that are the same as those right before them."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare each n-gram with the one that ends where it begins."""
        starts = [(start, size) for size in (1, 2, 3) for start in range(size, len(hypothesis) - size + 1)]
        return [-sum(hypothesis[start - size : start] == hypothesis[start : start + size] for start, size in starts)]


class Numbers(_Surface):
    """Minus the number of numbers, in digits, that only one side has."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare the digits of tokens, so that 1.000 is 1,000."""
        return [-_difference(*([_digits(token) for token in side if _digits(token)] for side in (source, hypothesis)))]


class Punctuation(_Surface):
    """Minus the number of punctuation tokens that only one side has."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare tokens without a letter or digit."""
        return [-_difference(*(filter(_is_punctuation, side) for side in (source, hypothesis)))]


def _difference(left: Iterable[str], right: Iterable[str]) -> int:
    counts = collections.Counter(left)
    counts.subtract(right)
    return sum(map(abs, counts.values()))


def _digits(token: str) -> str:
    return "".join(filter(str.isdigit, unescaped(token)))


def _is_punctuation(token: str) -> bool:
    return all(unicodedata.category(letter)[0] in "PS" for letter in unescaped(token))


class Length(CandidateFeature):
    """The number of words; with a corpus a second value, the log-density of log(words + 1) - log(source words + 1).

    It is that of a normal distribution with the corpus' mean and variance, so that the ratio is log-normal.

    Raises:
        InputError: no two files, or a corpus whose ratios are all the same.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._normal: tuple[float, float] | None = None
        self.signature = "length"
        if argument:
            source, target = two_files(argument, "length")
            ratios = np.array([_ratio(tokens(left), tokens(right)) for left, right in read_parallel(source, target)])
            if ratios.var() == 0:
                raise InputError(f"{source}, {target}: all pairs have the same ratio of lengths; expected several")
            self._normal = float(ratios.mean()), float(ratios.var())
            self.signature = f"length|sha256:{digest(Path(source))},{digest(Path(target))}"

    def row(self, source: Sequence[str], hypothesis: Sequence[str]) -> list[float]:
        """Return one value, or two."""
        if self._normal is None:
            return [len(hypothesis)]
        mean, variance = self._normal
        error = (_ratio(source, hypothesis) - mean) ** 2 / variance
        return [len(hypothesis), -0.5 * (error + math.log(2 * math.pi * variance))]


def two_files(argument: str, kind: str) -> tuple[str, str]:
    """Split `SOURCE,TARGET`."""
    source, comma, target = argument.partition(",")
    if not comma or "," in target:
        raise InputError(f"feature '{kind}:{argument}': expected {kind}:SOURCE,TARGET")
    return source, target


def _ratio(source: Sequence[str], hypothesis: Sequence[str]) -> float:
    return math.log((len(hypothesis) + 1) / (len(source) + 1))
