"""Scores that other tools made: read from a file, or from a program while it runs."""

import os
import selectors
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from features.arrays import Array
from features.feature import ListFeature, Resources, Sentence
from features.kinds.score_files import read_scores
from features.processes import killed_with_parent
from moses_io.errors import Fault, InputError, at, shown
from moses_io.streams import digest
from moses_io.text import encode, number, tokens

LONGEST = 1 << 16
"""Bytes of a line that is printed, at most."""

PATIENCE = 10.0
"""Seconds that a program has to end when its output is closed, or to close it when the program has ended."""


def ask(command: str, text: bytes, lines: int, folder: str = "") -> bytes:
    """Start a program by the shell in a folder, and return what it prints for a text; it need not read all of it.

    The program and its process group are killed when this function returns or raises.

    Raises:
        Fault: it fails, prints more than so many lines or one without end, or does not end with its output.
    """
    program = subprocess.Popen(
        command,
        shell=True,
        cwd=folder or None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    assert program.stdin and program.stdout
    try:
        with killed_with_parent(program):
            with program.stdin, program.stdout:
                printed = _talk(program, program.stdin, program.stdout, text, lines)
            status = program.wait(PATIENCE)  # with stdin closed: the program may still read it
    except subprocess.TimeoutExpired:
        raise Fault("closed its output, but does not end") from None
    if status:
        raise Fault(f"exit status {status}")
    return printed


def _talk(program: "subprocess.Popen[bytes]", stdin: IO[bytes], stdout: IO[bytes], text: bytes, lines: int) -> bytes:
    """Write the text and read what is printed, each when the program is ready for it, until its output ends."""
    printed, count, unread = bytearray(), 0, memoryview(text)
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select(PATIENCE)]
            if not ready and program.poll() is not None:
                raise Fault("ended, but left a process that keeps its output open")
            if stdin in ready:
                unread = _write(stdin, unread)
                if not unread:
                    selector.unregister(stdin)
                    stdin.close()
            if stdout in ready:
                block = os.read(stdout.fileno(), LONGEST)
                if not block:
                    return bytes(printed)
                printed += block
                count += block.count(b"\n")
                if count > lines:
                    raise Fault(f"more than {lines} lines for {lines} candidates")
                if len(printed) - printed.rfind(b"\n") > LONGEST:
                    raise Fault(f"line {count + 1} has more than {LONGEST} bytes")


def _write(stdin: IO[bytes], text: memoryview) -> memoryview:
    """Write as much as the program takes, and return the rest; nothing, if it takes no more."""
    try:
        return text[os.write(stdin.fileno(), text[:LONGEST]) :]
    except BlockingIOError:
        return text
    except BrokenPipeError:
        return text[:0]


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
