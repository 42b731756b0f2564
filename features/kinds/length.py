"""The length of a candidate."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import CandidateFeature, Resources
from moses_io.errors import InputError
from moses_io.streams import digest
from moses_io.text import read_parallel, tokens


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
