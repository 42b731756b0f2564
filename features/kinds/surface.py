"""Features of the surface of source and candidate: length, copies, repetitions, numbers and punctuation.

Counts of errors are negative, so that higher is better. Escapes of Moses' tokenizer, such as `&amp;`, count as the
characters that they represent.
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
from moses_io.files.text import parallel_lines, tokens, unescaped

Tokens = tuple[str, ...]


class _Surface(CandidateFeature):
    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = type(self).__name__.lower()


class Copied(_Surface):
    """The number of words that also occur in the source, such as names and words unknown to Moses.

    Punctuation does not count.
    """

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Return the number of shared tokens with an alphabetic character."""
        shared = collections.Counter(map(unescaped, source)) & collections.Counter(map(unescaped, hypothesis))
        return [sum(count for token, count in shared.items() if any(map(str.isalpha, token)))]


class Repetition(_Surface):
    """Minus the number of words, bigrams and trigrams that repeat the n-gram right before them."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare each n-gram with the n-gram that ends where it begins."""
        starts = [(start, size) for size in (1, 2, 3) for start in range(size, len(hypothesis) - size + 1)]
        return [-sum(hypothesis[start - size : start] == hypothesis[start : start + size] for start, size in starts)]


class Numbers(_Surface):
    """Minus the number of numbers, written in digits, that occur on one side only."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare the digits of tokens, so that 1.000 equals 1,000."""
        return [-_difference(*([_digits(token) for token in side if _digits(token)] for side in (source, hypothesis)))]


class Punctuation(_Surface):
    """Minus the number of punctuation tokens that occur on one side only."""

    def row(self, source: Tokens, hypothesis: Tokens) -> list[float]:
        """Compare the tokens of punctuation characters and symbols."""
        return [-_difference(*(filter(_is_punctuation, map(unescaped, side)) for side in (source, hypothesis)))]


def _difference(left: Iterable[str], right: Iterable[str]) -> int:
    counts = collections.Counter(left)
    counts.subtract(right)
    return sum(map(abs, counts.values()))


def _digits(token: str) -> str:
    return "".join(filter(str.isdigit, unescaped(token)))


def _is_punctuation(token: str) -> bool:
    return all(unicodedata.category(letter)[0] in "PS" for letter in token)


class Length(CandidateFeature):
    """The number of words and, with a corpus, the log-density of the length ratio.

    The ratio is (words + 1) / (source words + 1). Its distribution is log-normal: its logarithm has a normal
    distribution with the mean and variance of the corpus. The value is the log-density of the logarithm.

    Raises:
        InputError: the argument is not two files, or all pairs of the corpus have the same ratio.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._normal: tuple[float, float] | None = None
        self.signature = "length"
        if argument:
            source, target = two_files(argument, "length")
            pairs = parallel_lines(source, target)
            ratios = np.fromiter((_log_ratio(tokens(left), tokens(right)) for left, right in pairs), np.float64)  # (P,)
            if ratios.min() == ratios.max():
                raise InputError(f"{source}, {target}: all pairs have the same length ratio. Expected different ratios")
            self._normal = float(ratios.mean()), float(ratios.var())
            self.signature = f"length|sha256:{digest(Path(source))},{digest(Path(target))}"

    def row(self, source: Sequence[str], hypothesis: Sequence[str]) -> list[float]:
        """Return one value, or two with a corpus."""
        if self._normal is None:
            return [len(hypothesis)]
        mean, variance = self._normal
        error = (_log_ratio(source, hypothesis) - mean) ** 2 / variance
        return [len(hypothesis), -0.5 * (error + math.log(2 * math.pi * variance))]


def two_files(argument: str, kind: str) -> tuple[str, str]:
    """Split `SOURCE,TARGET`, or raise `InputError` if there are not exactly two paths."""
    source, comma, target = argument.partition(",")
    if not comma or "," in target:
        raise InputError(f"feature '{kind}:{argument}': expected {kind}:SOURCE,TARGET")
    return source, target


def _log_ratio(source: Sequence[str], hypothesis: Sequence[str]) -> float:
    return math.log((len(hypothesis) + 1) / (len(source) + 1))
