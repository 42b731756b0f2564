"""Scores that other tools made: read from a file, or from a program while it runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import ListFeature, Resources, Sentence
from features.kinds.program import ask
from features.kinds.score_files import read_scores
from moses_io.errors import InputError, at, shown
from moses_io.streams import digest
from moses_io.text import encode, number, tokens


class Scores(ListFeature):
    """The numbers of a file, a line a candidate in the order of the list; `features.kinds.score_files` has its forms.

    Raises:
        InputError: the file has another number of candidates than the list.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._path, self._form, self._rows = argument, *read_scores(argument)
        self._next = 0
        self.signature = f"scores|{self._form}|sha256:{digest(Path(argument))}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, values)."""
        start, self._next = self._next, self._next + sum(len(each.hypotheses) for each in sentences)
        if self._next > len(self._rows):
            raise InputError(f"{self._path}: scores of {len(self._rows)} candidates, the list has more")
        return self._rows[start : self._next]

    def end(self) -> None:
        """Refuse a list that has fewer candidates."""
        if self._next < len(self._rows):
            raise InputError(f"{self._path}: scores of {len(self._rows)} candidates, the list has {self._next}")


class Command:
    """What a program prints: for each line `source TAB candidate` on its stdin a line of numbers on its stdout.

    The program is started once for each batch of sentences, by the shell, in the folder of `Resources`.

    Raises:
        InputError: it fails, does not print a line of as many numbers for each candidate, or does not end then.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._command, self._folder = argument, resources.folder
        self.signature = f"command|{argument}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, values)."""
        pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        text = "".join(f"{' '.join(source)}\t{' '.join(hypothesis)}\n" for source, hypothesis in pairs)
        with at(f"feature 'command:{self._command}': "):
            printed = ask(self._command, encode(text), len(pairs), self._folder)
        lines = printed.decode(errors="replace").removesuffix("\n").split("\n") if printed else []
        rows = list(self._numbers(lines))
        if len(rows) != len(pairs) or len({len(row) for row in rows}) != 1:
            counts = f"{len(rows)} lines of numbers for {len(pairs)} candidates"
            raise InputError(f"feature 'command:{self._command}': {counts}")
        return np.array(rows)

    def _numbers(self, lines: Sequence[str]) -> Iterator[list[float]]:
        for place, line in enumerate(lines, start=1):
            values = [number(token) for token in tokens(line.replace("\t", " ").rstrip("\r"))]
            if not values or None in values:
                raise InputError(f"feature 'command:{self._command}': line {place} is no numbers: {shown(line)}")
            yield [value for value in values if value is not None]
