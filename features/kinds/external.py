"""Scores of other tools, read from a file or from a running program."""

import os
import re
import selectors
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from features.arrays import Array
from features.feature import ListFeature, Resources, Sentence
from features.processes import killed_with_parent
from moses_io.files.errors import Fault, InputError, at, shown
from moses_io.files.streams import digest, name_of
from moses_io.files.text import encode, no_number, number, read_lines, tokens

LINES = {
    "comet": "hyp.txt<TAB>Segment 3<TAB>score: 0.81 (the line of the system score is ignored)",
    "fairseq": "H-3<TAB>-0.51<TAB>text, in any order (other lines are ignored)",
    "lamtram": "ll=-12.3 unk=1 (the number of unknown words is negated)",
    "mantis": "3 ||| source ||| target ||| 1.7 (the last value is a loss, which is negated)",
    "nematus": "0 ||| text ||| LM0= -2 ||| -3 12.5 (the values at the end are losses, which are negated)",
    "numbers": "-12.3 4 (values that are used unchanged, such as the output of marian-scorer)",
}
"""Description of the lines of each format."""

_COMET = re.compile(r".*\tSegment [0-9]+\tscore: *(\S+)(\tvariance: .*)?")
_COMET_OF_ALL = re.compile(r"[^\t]+\tscore: *\S+")
_FAIRSEQ = re.compile(r"H-([0-9]{1,18})\t(\S+)\t.*")
_LAMTRAM = re.compile(r"ll=(\S+)(?: unk=(\S+))?.*")
_LABEL = re.compile(r"\S+[=:] +[-+0-9.]")


def _comet(line: str) -> list[float | None]:
    match = _COMET.fullmatch(line)
    return [number(match.group(1))] if match else []


def _lamtram(line: str) -> list[float | None]:
    match = _LAMTRAM.fullmatch(line)
    if not match:
        return []
    unknown = number(match.group(2)) if match.group(2) else None
    return [number(match.group(1)), *([] if unknown is None else [-unknown])]


def _mantis(line: str) -> list[float | None]:
    fields = _fields(line)
    last = number(fields[-1]) if len(fields) == 4 and not _LABEL.match(fields[2]) else None
    return [] if last is None or number(fields[0]) is None else [-last]


def _nematus(line: str) -> list[float | None]:
    """Return minus the losses, which follow the total or the alignment."""
    fields = _fields(line)
    if len(fields) < 4 or "=" not in fields[2]:
        return []
    last = tokens(fields[-1])
    added = [token for token in last if number(token) is not None][1 if len(fields) == 4 else 0 :]
    return [-float(token) for token in added]


def _fields(line: str) -> list[str]:
    return [field.strip(" ") for field in line.split("|||")]


def _numbers(line: str) -> list[float | None]:
    return [number(token) for token in tokens(line.replace("\t", " "))]


FORMS: dict[str, Callable[[str], list[float | None]]] = {
    "comet": _comet,
    "lamtram": _lamtram,
    "nematus": _nematus,
    "mantis": _mantis,
    "numbers": _numbers,
}


def read_scores(path: str) -> tuple[str, Array]:
    """Return the name of the format of a file, which its first line determines, and its rows (candidates, values).

    Raises:
        InputError: the format is unknown, or a line does not have the format and number of values of the first line.
    """
    lines = dict(enumerate(read_lines(path), start=1))
    hypotheses = {place: match for place, line in lines.items() if (match := _FAIRSEQ.fullmatch(line))}
    if hypotheses:
        return "fairseq", _ordered(hypotheses, path)
    lines = {place: line for place, line in lines.items() if not _COMET_OF_ALL.fullmatch(line)}
    first, begin = next(iter(lines.items()), (1, ""))
    form = next((name for name, parse in FORMS.items() if _good(parse(begin))), "")
    if not form:
        expected = "expected scores in a form that `moses-rerank features` lists"
        raise InputError(f"{name_of(path)}:{first}: {expected}, found {shown(begin)}")
    rows: list[list[float | None]] = []
    for place, line in lines.items():
        row = FORMS[form](line)
        if not _good(row) or (rows and len(row) != len(rows[0])):
            raise InputError(f"{name_of(path)}:{place}: expected the form of the first line, which is '{form}'")
        rows.append(row)
    return form, np.array(rows, dtype=np.float64)


def _good(row: list[float | None]) -> bool:
    return bool(row) and None not in row


def _ordered(hypotheses: dict[int, re.Match[str]], path: str) -> Array:
    """Order scores of fairseq by candidate number, which must run from 0 without gaps."""
    by_number: dict[int, float] = {}
    for place, match in hypotheses.items():
        value = number(match.group(2))
        if value is None or int(match.group(1)) in by_number:
            fault = "a second score of this candidate" if value is not None else no_number(match.group(2))
            raise InputError(f"{name_of(path)}:{place}: {fault}")
        by_number[int(match.group(1))] = value
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(f"{name_of(path)}: scores of {len(by_number)} candidates, not numbered from 0 without gaps")
    return np.array([[by_number[place]] for place in range(len(by_number))])


class Scores(ListFeature):
    """The values of a file with one line for each candidate, in the order of the list. `LINES` describes the formats.

    Raises:
        InputError: the numbers of candidates in the file and in the list differ.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._path, self._form, self._rows = argument, *read_scores(argument)
        self._next = 0
        self.signature = f"scores|{self._form}|sha256:{digest(Path(argument))}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, values)."""
        start, self._next = self._next, self._next + sum(len(each.hypotheses) for each in sentences)
        if self._next > len(self._rows):
            raise InputError(f"{self._path}: scores of {len(self._rows)} candidates, the list has more")
        return self._rows[start : self._next]

    def end(self) -> None:
        """Raise `InputError` if the list has fewer candidates than the file."""
        if self._next < len(self._rows):
            raise InputError(f"{self._path}: scores of {len(self._rows)} candidates, the list has {self._next}")


LONGEST = 1 << 16
"""Maximum bytes of an output line."""

PATIENCE = 10.0
"""Timeout in seconds: for a program to end after it closed its output, or for its output to close after it ended."""


def ask(command: str, text: bytes, lines: int, folder: str = "") -> bytes:
    """Run a shell command in a folder, write a text to its stdin and return its output.

    The program need not read the whole text. It and its process group are killed when this function returns or raises.

    Raises:
        Fault: the program fails, prints more than `lines` lines or a line longer than `LONGEST`, or does not end after
            it closed its output.
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
            status = program.wait(PATIENCE)  # stdin is closed: a program that reads it can end
    except subprocess.TimeoutExpired:
        raise Fault("closed its output, but does not end") from None
    if status:
        raise Fault(f"exit status {status}")
    return printed


def _talk(program: "subprocess.Popen[bytes]", stdin: IO[bytes], stdout: IO[bytes], text: bytes, lines: int) -> bytes:
    """Write the text and read the output, each as soon as the program is ready, until the output ends."""
    printed, count, unread = bytearray(), 0, memoryview(text)
    # Reading and writing alternate: with blocking writes, both sides could wait for each other on full pipes.
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
    """Write as much as the program accepts and return the rest, which is empty if it closed its stdin."""
    try:
        return text[os.write(stdin.fileno(), text[:LONGEST]) :]
    except BlockingIOError:
        return text
    except BrokenPipeError:
        return text[:0]


class Command:
    """Values that a program prints. It reads lines `source TAB candidate` and prints a line of values for each.

    The shell starts the program once for each batch of sentences, in the folder of `Resources`.

    Raises:
        InputError: the program fails, does not print a line for each candidate with equally many values, or does not
            end after its output.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._command, self._folder = argument, resources.folder
        self.signature = f"command|{argument}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, values)."""
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
            values = _numbers(line.rstrip("\r"))
            if not _good(values):
                raise InputError(
                    f"feature 'command:{self._command}': line {place}: expected numbers, found {shown(line)}"
                )
            yield [value for value in values if value is not None]
