"""What other scorers print, brought to numbers of which higher is better, in the order of the list."""

import re
from collections.abc import Callable

import numpy as np

from features.arrays import Array
from moses_io.errors import InputError, shown
from moses_io.streams import name_of
from moses_io.text import no_number, number, read_lines, tokens

LINES = {
    "comet": "hyp.txt<TAB>Segment 3<TAB>score: 0.81; the line without a segment is left out",
    "fairseq": "H-3<TAB>-0.51<TAB>text, in any order; other lines are left out",
    "lamtram": "ll=-12.3 unk=1; of unknown words minus the number",
    "mantis": "3 ||| source ||| target ||| 1.7; the last number is a loss, minus it is kept",
    "nematus": "0 ||| text ||| LM0= -2 ||| -3 12.5; minus the numbers at the end, which are losses",
    "numbers": "-12.3 4; as they are, of marian-scorer among others",
}
"""What a line of each form looks like."""

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
    """Numbers behind the total, or behind the alignment."""
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
    """Return the name of a file's form, told by its first line, and its rows (candidates, values).

    Raises:
        InputError: no form that is known, or a line unlike the first.
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
            raise InputError(f"{name_of(path)}:{place}: not like the first line, which is of the form '{form}'")
        rows.append(row)
    return form, np.array(rows, dtype=np.float64)


def _good(row: list[float | None]) -> bool:
    return bool(row) and None not in row


def _ordered(hypotheses: dict[int, re.Match[str]], path: str) -> Array:
    """Put hypotheses of fairseq into the order of their numbers, of which none may be missing."""
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
