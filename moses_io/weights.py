"""Weights: the sections of `moses.ini` and `rescore.ini`, and dense and sparse weight files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path

from moses_io.errors import Fault, InputError, counted, printable, shown
from moses_io.hypothesis import UNLABELLED, Hypothesis, is_sparse
from moses_io.streams import STANDARD, check_plain, name_of, numbered_lines
from moses_io.text import LARGEST, decode, no_number, number, tokens, without_line_end, write_text

_NO_WEIGHT = re.compile(r"(^[^ ]+=| UNTUNEABLE)$")
_COMMENT = re.compile(r"(^|[ \t])#.*")

_OLD_SECTIONS = {"weight-d": "d", "weight-l": "lm", "weight-t": "tm", "weight-w": "w"}

Weights = dict[str, tuple[float, ...]]
"""Values of each feature, dense or sparse, by its name without `=`."""


def read_weights(path: str) -> Weights:
    """Read weights.

    A file with sections gives those under `[weight]`; of two lines with one name the later wins, as in Moses. Those of
    the sparse weight file that `[weight-file]` names, beside the ini, come before them; numbers under `[weight-d]`,
    `-l`, `-t` and `-w` (before 2013) are the weights of the labels d, lm, tm and w. A file without sections is a dense
    weight file, where a name is repeated for each of its values, or a sparse one, `name value`. What is said to be
    UNTUNEABLE is no weight, nor is a name without a value (so `moses -show-weights` prints purely sparse features).
    `#` opens a comment at the start of a line or after a blank; a name may hold one. Of lines of numbers alone, mert's
    `init.opt`, the first is taken, as the weights of features without a name.

    Raises:
        InputError: a line cannot be read, there is no weight at all, or a file names itself as its weight file.
    """
    return _read(path, [])


def weight_files(path: str) -> list[str]:
    """Return all files that `read_weights` reads: this one, and those that `[weight-file]` names."""
    files: list[str] = []
    _read(path, files)
    return files


def _read(path: str, files: list[str]) -> Weights:
    """Read weights, and add the files that were read."""
    if path in files:
        raise InputError(f"{name_of(path)}: names itself as its weight file")
    if path != STANDARD:
        check_plain(path)
    files.append(path)
    sectioned: Weights = {}
    plain: dict[str, list[float]] = {}
    section, other = None, {}
    for line_number, raw in numbered_lines(path):
        line = _COMMENT.sub("", decode(without_line_end(raw))).strip(" \t")
        if line.startswith("["):
            section = line[1:].split("]")[0]
        elif line and section == "weight-file":
            other = _read(str(Path(path).parent / line.split(" ")[-1]), files)
        elif line and section in _OLD_SECTIONS:
            values = _numbers([line], _OLD_SECTIONS[section], f"{name_of(path)}:{line_number}")
            sectioned[_OLD_SECTIONS[section]] = sectioned.get(_OLD_SECTIONS[section], ()) + values
        elif line and section is None and all(number(token) is not None for token in tokens(line)):
            plain.setdefault(UNLABELLED, [float(token) for token in tokens(line)])
        elif line and section in (None, "weight") and not _NO_WEIGHT.search(line):
            name, values = _parse(line, f"{name_of(path)}:{line_number}")
            if section:
                sectioned[name] = values
            else:
                plain.setdefault(name, []).extend(values)
    weights = {**other, **sectioned} if section else {name: tuple(values) for name, values in plain.items()}
    if not weights:
        raise InputError(f"{name_of(path)}: no weights; expected lines 'Name= 0.1 0.2', in an ini under [weight]")
    return weights


def names_of_values(name: str, count: int) -> list[str]:
    """Return the name of each value of a feature: `LM`, or `LM.0`, `LM.1` where it has several."""
    return [name] if count == 1 else [f"{name}.{number}" for number in range(count)]


def check_weights(weights: Mapping[str, Sequence[float]]) -> Weights:
    """Return weights that a program named, each feature's as a tuple.

    Raises:
        InputError: a value that is no number, or not finite.
    """
    checked: Weights = {}
    for name, values in weights.items():
        if not isinstance(values, Iterable) or not all(isinstance(value, Real) for value in values):
            raise InputError(f"weights of {shown(name)}: expected a sequence of numbers, found {shown(values)}")
        checked[name] = tuple(float(value) for value in values)
        if not all(abs(value) <= LARGEST for value in checked[name]):
            raise InputError(f"weights of {shown(name)}: not finite, or larger than {LARGEST:.2g}: {shown(values)}")
    return checked


def weighted(hypothesis: Hypothesis, weights: Weights) -> dict[str, float]:
    """Return w·f of each feature of a line by its name, dense ones first; 0 for one without weights.

    Raises:
        Fault: a feature has another number of weights than of values.
    """
    parts: dict[str, float] = {}
    for name, values in (*hypothesis.dense, *((name, (value,)) for name, value in hypothesis.sparse.items())):
        own = weights.get(name, (0.0,) * len(values))
        if len(own) != len(values):
            pair = counted(len(values), "value"), counted(len(own), "weight")
            raise Fault(f"feature {shown(name)} has {' in the list and '.join(pair)}")
        parts[name] = sum(weight * value for weight, value in zip(own, values, strict=True))
    return parts


def write_weights(path: str, weights: Mapping[str, Sequence[float]], comments: Sequence[str]) -> None:
    """Write an ini with a `[weight]` section, comments in front, that Moses' rescore.py reads too.

    Raises:
        InputError: a weight that is not finite, or a name that an ini cannot carry.
    """
    for name, values in weights.items():
        if name.startswith(("[", "#")) or "\t" in name:
            raise InputError(
                f"{path}: an ini cannot carry the name {shown(name)}, with '[' or '#' in front or a tab in it"
            )
        if not all(abs(value) <= LARGEST for value in values):
            raise InputError(f"{path}: the weight of {shown(name)} is not finite, or larger than {LARGEST:.2g}")
    lines = [*(f"# {printable(comment)}" for comment in comments), "", "[weight]"]
    lines += [f"{name}= {' '.join(f'{value:.9g}' for value in values)}" for name, values in weights.items()]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _parse(line: str, place: str) -> tuple[str, tuple[float, ...]]:
    name, *values = tokens(line.replace("\t", " "))
    if is_sparse(name, len(values)):
        return name.removesuffix("="), _numbers(values, name, place)
    if not name.endswith("=") or len(name) == 1:
        raise InputError(f"{place}: expected 'Name= value …', found {shown(line)}")
    return name[:-1], _numbers([value for value in values if value != "UNTUNEABLECOMPONENT"], name[:-1], place)


def _numbers(values: Sequence[str], name: str, place: str) -> tuple[float, ...]:
    weights = []
    for value in values:
        weight = number(value)
        if weight is None:
            raise InputError(f"{place}: weights of {shown(name)}: {no_number(value)}")
        weights.append(weight)
    if not weights:
        raise InputError(f"{place}: weights of {shown(name)}: expected numbers, found none")
    return tuple(weights)
