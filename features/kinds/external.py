"""Scores of other tools, read from a file or from a running program."""

import re
from collections.abc import Callable, Sequence, Sized
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import ListFeature, Resources, Sentence
from features.programs import RunningProgram, ask
from moses_io.files.errors import InputError, at, counted, shown
from moses_io.files.streams import digest, name_of
from moses_io.files.text import encode, no_number, number, read_lines, tokens, without_tabs, words

LINES = {
    "comet": "hyp.txt<TAB>Segment 3<TAB>score: 0.81 (the line of the system score is ignored)",
    "fairseq": "H-3<TAB>-0.51<TAB>text, in any order (log2 divided by the length, unchanged. Other lines are ignored)",
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
_LINK = re.compile(r"[0-9]+-[0-9]+|.*=.*")


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
    # The losses follow the total or, in a line with more fields, the links of the alignment.
    losses = last[1:] if len(fields) == 4 else [token for token in last if not _LINK.fullmatch(token)]
    values = [number(token) for token in losses]
    return [None if value is None else -value for value in values]


def _fields(line: str) -> list[str]:
    return [field.strip(" ") for field in line.split("|||")]


def _numbers(line: str) -> list[float | None]:
    return [number(token) for token in words(line)]


FORMATS: dict[str, Callable[[str], list[float | None]]] = {
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
    hypotheses = {line_number: match for line_number, line in lines.items() if (match := _FAIRSEQ.fullmatch(line))}
    if hypotheses:
        return "fairseq", _ordered(hypotheses, path)
    lines = {line_number: line for line_number, line in lines.items() if not _COMET_OF_ALL.fullmatch(line)}
    first, begin = next(iter(lines.items()), (1, ""))
    name = next((name for name, parse in FORMATS.items() if _good(parse(begin))), "")
    if not name:
        expected = "expected a score format that `moses-rerank features` lists"
        raise InputError(f"{name_of(path)}:{first}: {expected}, found {shown(begin)}")
    rows: list[list[float | None]] = []
    for line_number, line in lines.items():
        row = FORMATS[name](line)
        if not _good(row):
            expected = f"expected finite values in the format '{name}'"
            raise InputError(f"{name_of(path)}:{line_number}: {expected}, found {shown(line)}")
        rows.append(row)
        if len(row) != len(rows[0]):
            raise InputError(f"{name_of(path)}:{line_number}: {_other_size(row, rows[0])}")
    return name, np.array(rows, dtype=np.float64)


def _good(row: list[float | None]) -> bool:
    return bool(row) and None not in row


def _other_size(row: Sequence[object], first: Sequence[object]) -> str:
    return f"{counted(len(row), 'value')}, the first line has {len(first)}"


def _ordered(hypotheses: dict[int, re.Match[str]], path: str) -> Array:
    """Order scores of fairseq by candidate number, which must run from 0 without gaps."""
    by_number: dict[int, float] = {}
    for line_number, match in hypotheses.items():
        value = number(match.group(2))
        candidate = int(match.group(1))
        if value is None or candidate in by_number:
            fault = no_number(match.group(2)) if value is None else f"candidate {candidate} has a second score"
            raise InputError(f"{name_of(path)}:{line_number}: {fault}")
        by_number[candidate] = value
    if sorted(by_number) != list(range(len(by_number))):
        raise InputError(f"{name_of(path)}: {_scores_of(by_number)}, not numbered from 0 without gaps")
    return np.array([[by_number[index]] for index in range(len(by_number))])  # (candidates, 1)


def _scores_of(candidates: Sized) -> str:
    return f"scores of {counted(len(candidates), 'candidate')}"


class Scores(ListFeature):
    """The values of a file with one line for each candidate, in the order of the list. `LINES` describes the formats.

    Raises:
        InputError: the numbers of candidates in the file and in the list differ.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._path, (name, self._rows) = argument, read_scores(argument)
        self._next = 0
        self.signature = f"scores|{name}|sha256:{digest(Path(argument))}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, values)."""
        start, self._next = self._next, self._next + sum(len(each.hypotheses) for each in sentences)
        if self._next > len(self._rows):
            raise InputError(f"{self._path}: {_scores_of(self._rows)}, the list has more")
        return self._rows[start : self._next]

    def end(self) -> None:
        """Raise `InputError` if the list has fewer candidates than the file."""
        if self._next < len(self._rows):
            raise InputError(f"{self._path}: {_scores_of(self._rows)}, the list has {self._next}")


class Command:
    """Values that a program prints. It reads lines `source TAB candidate` and prints a line of values for each.

    The shell starts the program once for each batch of sentences, in the folder of `Resources`.

    Raises:
        InputError: the program fails, does not print a line for each candidate with equally many values, or does not
            end after its output.
    """

    kind = "command"

    def __init__(self, argument: str, resources: Resources) -> None:
        self._argument, self._folder = argument, resources.folder
        self.signature = f"{self.kind}|{argument}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, values)."""
        with at(f"feature '{self.kind}:{self._argument}': "):
            return read_values(self._lines(sentences), sum(len(each.hypotheses) for each in sentences))

    def _lines(self, sentences: Sequence[Sentence]) -> list[str]:
        """Return the lines that the program prints."""
        text = "".join(map(lines_of, sentences))
        printed = ask(self._argument, encode(text), text.count("\n"), self._folder)
        return printed.decode(errors="replace").removesuffix("\n").split("\n") if printed else []


class Server(Command):
    """Values that a program prints, like `Command`, but the program is started once and keeps running.

    It reads lines `source TAB candidate`, with an empty line after the candidates of each sentence. It then prints a
    line of values for each candidate and flushes its output.
    """

    kind = "server"

    def __init__(self, argument: str, resources: Resources) -> None:
        super().__init__(argument, resources)
        self._program = RunningProgram(argument, self._folder, name=f"feature 'server:{argument}'")

    def _lines(self, sentences: Sequence[Sentence]) -> list[str]:
        """Return the lines that the program prints."""
        text = "".join(lines_of(each) + "\n" for each in sentences)
        return self._program.ask(encode(text), sum(len(each.hypotheses) for each in sentences))


def lines_of(sentence: Sentence) -> str:
    """Return a line `source TAB candidate` for each candidate of a sentence, with a space for a tab in a candidate."""
    source = " ".join(sentence.source)
    return "".join(f"{source}\t{without_tabs(' '.join(hypothesis))}\n" for hypothesis in sentence.hypotheses)


def read_values(lines: Sequence[str], count: int) -> Array:
    """Parse the lines that a program printed for `count` candidates. Return (count, values).

    Raises:
        InputError: a line has no numbers, or there is not one line with equally many values for each candidate.
    """
    rows: list[list[float | None]] = []
    for line_number, line in enumerate(lines, start=1):
        values = _numbers(line.rstrip("\r"))
        if not _good(values):
            raise InputError(f"line {line_number}: expected numbers, found {shown(line)}")
        rows.append(values)
        if len(values) != len(rows[0]):
            raise InputError(f"line {line_number}: {_other_size(values, rows[0])}")
    if len(rows) != count:
        raise InputError(f"expected {counted(count, 'line')}, one per candidate, found {len(rows)}")
    return np.array(rows, dtype=np.float64)
