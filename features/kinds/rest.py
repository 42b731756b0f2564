"""What Moses has in its total and does not print as a feature, such as UnknownWordPenalty."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence
from features.progress import warn
from moses_io.errors import Fault, InputError
from moses_io.hypothesis import no_total
from moses_io.streams import digest
from moses_io.weights import read_weight_file, weighted

ROUNDING = 0.01
"""A smaller rest is what printing with six digits leaves."""


class Rest:
    """One value: the total less the weighted features that the list prints, 0 where that is no more than rounding.

    With weight 1 beside the decoder's weights it restores the total.

    Raises:
        InputError: the file is no weights.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        content = read_weight_file(argument)
        for warning in content.warnings:
            warn(warning)
        self._path, self._weights = argument, content.weights
        self.signature = f"rest|sha256:{','.join(digest(Path(path)) for path in content.files)}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, 1)."""
        return np.array([[self._rest(each, row)] for each in sentences for row in range(len(each.lines))])

    def _rest(self, sentence: Sentence, row: int) -> float:
        line = sentence.lines[row]
        if line.total is None:
            raise InputError(f"{sentence.place(line)}: feature 'rest': {no_total(line)}")
        if not any(name in self._weights for name, _ in line.dense):
            lacking = f"no feature of the list has a weight in {self._path}; are these the decoder's?"
            raise InputError(f"{sentence.place(line)}: feature 'rest': {lacking}")
        try:
            rest = line.total - sum(weighted(line, self._weights).values())
        except Fault as fault:
            raise InputError(f"{sentence.place(line)}: feature 'rest': {fault} in {self._path}") from None
        return rest if abs(rest) >= ROUNDING else 0.0
