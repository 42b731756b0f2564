"""Source sentences beside a list: read whole, or line by line as a list that is still being written asks for them."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from moses_io.nbest import SentenceList, check_id
from moses_io.streams import LONGEST, Lines, is_live, open_input, too_long
from moses_io.text import check_markup, decode, first_line, read_sources, without_line_end, without_tabs

PATIENCE = 10.0
"""Seconds that a growing source has to bring the line of a sentence whose candidates are there."""


class Sources(Protocol):
    """Source sentences by their ids."""

    @property
    def total(self) -> int | None:
        """How many there are, as far as that is known at the start."""

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a list's sentence; an `InputError` if there is none."""

    def count(self) -> int:
        """Return how many there are, when the list has ended."""


class WholeSources:
    """All lines of a file, read at the start."""

    def __init__(self, path: str | Lines) -> None:
        self._lines = read_sources(path)

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a list's sentence; see `Sources`."""
        check_id(sentence_list, len(self._lines), "source")
        return self._lines[sentence_list.sentence]

    @property
    def total(self) -> int:
        """How many lines the file has."""
        return len(self._lines)

    def count(self) -> int:
        """Return the same."""
        return len(self._lines)


class GrowingSources:
    """Lines of a file or a pipe, read when the list, whose ids go up, comes to their sentence.

    A file that `grows` beside a live list may bring a line some seconds late.
    """

    total = None

    def __init__(self, stream: BinaryIO, path: str, grows: bool) -> None:
        self._stream, self._path, self._grows = stream, path, grows
        self._read, self._last = 0, ""

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a list's sentence; see `Sources`."""
        while self._read <= sentence_list.sentence and self._next(PATIENCE if self._grows else 0):
            pass
        check_id(sentence_list, self._read, "source")
        return self._last

    def count(self) -> int:
        """Read to the end and return how many lines there are."""
        while self._next(0):
            pass
        return self._read

    def _next(self, patience: float) -> bool:
        """Read one more line, waited for so many seconds, and return whether there is one."""
        line, end = b"", time.monotonic() + patience
        while not line.endswith(b"\n"):
            part = self._stream.readline(LONGEST + 1)
            line += part
            if len(line) > LONGEST:
                raise too_long(self._path, self._read + 1)
            if not part and time.monotonic() >= end:
                break
            if not part:
                time.sleep(0.02)
        if not line:
            return False
        text = decode(without_line_end(line)) if self._read else first_line(line, self._path)
        self._read, self._last = self._read + 1, without_tabs(text)
        check_markup(self._path, [self._last], self._read)
        return True


@contextlib.contextmanager
def open_sources(path: str | Lines, nbest: str | Lines) -> Iterator[Sources]:
    """Open the source of a list whose ids go up; it may grow where the list comes from a pipe."""
    if isinstance(path, Lines):
        yield WholeSources(path)
        return
    with open_input(path) as stream:
        yield GrowingSources(stream, path, grows=is_live(nbest) and os.path.isfile(path))
