"""Reader and writer of weights: `moses.ini`, `rescore.ini`, and dense and sparse weight files."""

import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any

from moses_io.files.errors import Fault, InputError, at, counted, printable, shown
from moses_io.files.streams import STANDARD, check_plain, name_of
from moses_io.files.text import LIMIT, MAX_VALUE, number, numbers, stream_lines, words, write_text
from moses_io.hypothesis import UNLABELLED, Hypothesis, is_sparse
from moses_io.untuneable import UNKNOWN_WORDS, Untuneable, split_untuneable, with_all_components

# A name without values, a feature with only untuneable components, or an untuneable feature (`moses -show-weights`).
_NO_WEIGHT = re.compile(r"(^[^ ]+=( UNTUNEABLECOMPONENT)*| UNTUNEABLE)$")
_COMMENT = re.compile(r"(^|[ \t])#.*")
_NAMED = ("weight", "weight-add", "weight-overwrite")

_SAME = ("bl", "d", "dlm", "e", "glm", "lex", "lr", "p", "pb", "pp", "slm", "w", "wt")
_OLD_LABELS = {
    **{f"weight-{label}": label for label in _SAME},
    "weight-generation": "g",
    "weight-i": "I",
    "weight-l": "lm",
    "weight-t": "tm",
    "weight-u": f"{UNKNOWN_WORDS}0",
}
"""Sections of ini files from before 2013 (moses/Parameter.cpp), and the feature names in lists of that time.

The lists of that time have no feature for unknown words, so `weight-u` gets the present name.
"""

OLD_NAMES = frozenset(_OLD_LABELS.values())
"""Names of features in ini files and lists from before 2013."""

Weights = dict[str, tuple[float, ...]]
"""Weights of each feature, dense or sparse, by its name without `=`."""


@dataclass(frozen=True)
class WeightFile:
    """The content of a weight file.

    Attributes:
        weights: of the components that Moses prints in its lists.
        untuneable: features with components that Moses does not print, by name.
        unweighted: names of features under `[feature]` that Moses prints and that have no weights. For most features,
            Moses then uses 1 for each component.
        files: paths of all files that were read.
        warnings: messages about possible mistakes in these files.
    """

    weights: Weights
    untuneable: dict[str, Untuneable] = field(default_factory=dict)
    unweighted: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def further_weights(self, features: Iterable[tuple[str, int]]) -> Weights:
        """Return the weights that Moses uses for features of a list and that `weights` does not have.

        These are the weights of untuneable features, if the list has them, and 1 for each value of a feature without
        weights.

        Args:
            features: (name, number of values) of each dense feature of the list.
        """
        further: Weights = {}
        for name, count in features:
            if name in self.unweighted:
                further[name] = (1.0,) * count
            elif name in self.untuneable and name not in self.weights:
                values = self.untuneable[name].weights
                visible = tuple(value for value in values if value is not None)
                if len(visible) == len(values) == count:
                    further[name] = visible
        return further


def read_weights(path: str) -> Weights:
    """Return the weights in a file of any form that `read_weight_file` supports."""
    return read_weight_file(path).weights


def weight_files(path: str) -> list[str]:
    """Return the paths of all files that `read_weights` reads: `path` and the file under `[weight-file]`, if any."""
    return list(read_weight_file(path).files)


def read_weight_file(path: str) -> WeightFile:
    """Read weights in one of these formats of Moses.

    * An ini file. The sections, from lowest to highest priority: the sparse weight file under `[weight-file]`, then
      `[weight-add]`, `[weight]` and `[weight-overwrite]`. If a section has two lines for one name, the later line wins,
      as in Moses. In ini files from before 2013, `[weight-d]`, `[weight-l]` etc. have the weights of the features d, lm
      etc., one per line. Components that `[feature]` declares as untuneable are returned separately.
    * A dense weight file without sections, which repeats a name for each of its values (`runN.dense` of mert-moses.pl).
    * A sparse weight file with lines `name value`. The name is the first word, unchanged. If a name is repeated, the
      last value wins (FVector::load in moses/FeatureVector.cpp).
    * A file of values without names (`init.opt` of mert). The first line has the weights of the features without a
      name.

    Lines with `UNTUNEABLE` and names without values (`moses -show-weights`) are skipped. `#` starts a comment at the
    start of a line or after a space or tab. The output of kbmira and megam (`F0 0.28`) has no feature names and is read
    by `moses-rerank import-weights` only.

    Raises:
        InputError: a line cannot be parsed, or the file has no weights.
    """
    raw = list(_placed_lines(path))
    uncommented = ((place, _COMMENT.sub("", line).strip(" \t")) for place, line in raw)
    lines = [(place, line) for place, line in uncommented if line]
    first = words(lines[0][1]) if lines else []
    if any(line.startswith("[") for _, line in lines):
        content = _read_ini(path, lines)
    elif first and all(number(word) is not None for word in first):
        content = WeightFile({UNLABELLED: tuple(map(float, first))}, files=(path,))
    elif _is_sparse_file([line for _, line in lines]):
        content = WeightFile(_parse_sparse(raw), files=(path,))
    else:
        content = WeightFile(*split_untuneable(_parse_dense(lines), []), files=(path,))
    if not content.weights:
        raise InputError(f"{name_of(path)}: no weights. Expected lines 'Name= 0.1 0.2', in an ini under [weight]")
    return content


def _placed_lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield (`file:line` for messages, line) of a plain file or stdin."""
    if path != STANDARD:
        check_plain(path)
    for line_number, line in enumerate(stream_lines(path), start=1):
        yield f"{name_of(path)}:{line_number}", line


def _read_ini(path: str, lines: Sequence[tuple[str, str]]) -> WeightFile:
    """Read the sections of an ini file, given its lines without comments."""
    sparse: Weights = {}
    added: Weights = {}
    weights: Weights = {}
    files = [path]
    warnings: list[str] = []
    features: list[tuple[str, str]] = []
    overwriting: list[tuple[str, str]] = []
    section = ""
    for place, whole_line in lines:
        # In weights, `#` can also be part of a name such as `wt_#~#=`.
        line = whole_line if section in _NAMED else whole_line.partition("#")[0].rstrip(" \t")
        if line.startswith("["):
            section = line[1:].split("]")[0]
        elif section == "weight-file":
            found, warning = _find_sparse_file(words(line)[-1], path, place)
            sparse = read_sparse_weights(found)
            files.append(found)
            warnings += warning
        elif section == "feature":
            features.append((place, line))
        elif section in ("weight", "weight-add") and not _NO_WEIGHT.search(line):
            if not words(line)[0].endswith("="):  # Moses drops the last character of the name without looking at it
                raise InputError(f"{place}: expected 'Name= value …', found {shown(line)}")
            name, values = _parse(line, place)
            (weights if section == "weight" else added)[name] = values
        elif section == "weight-overwrite":
            overwriting += [(place, word) for word in words(line)]
        elif section in _OLD_LABELS:
            label = _OLD_LABELS[section]
            weights[label] = weights.get(label, ()) + _numbers([line], label, place)
    visible, untuneable, unweighted = split_untuneable(_overwritten(added | weights, overwriting), features)
    return WeightFile(sparse | visible, untuneable, unweighted, tuple(files), tuple(warnings))


def _overwritten(weights: Weights, overwriting: Sequence[tuple[str, str]]) -> Weights:
    """Return the weights after `[weight-overwrite]`, which has `Name= 1 x 2 …`, where `x` keeps a component.

    Args:
        weights: of the other sections.
        overwriting: (`file:line`, word) of each word in the section. Moses reads its lines as one sequence of words.
    """
    named: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    name = ""
    for place, word in overwriting:
        if word.endswith("=") and len(word) > 1:
            name = word[:-1]
            named[name], places[name] = [], place
        elif not name:
            raise InputError(f"{place}: expected 'Name= value …', found {shown(word)}")
        else:
            named[name].append(word)
    overwritten = dict(weights)
    for name, values in named.items():
        components = weights.get(name, ())
        texts = [
            f"{components[i]!r}" if value == "x" and i < len(components) else value for i, value in enumerate(values)
        ]
        overwritten[name] = _numbers(texts, name, places[name])
    return overwritten


def _find_sparse_file(name: str, ini: str, place: str) -> tuple[str, list[str]]:
    """Return the path of the sparse weight file in an ini file, and a list with at most one warning.

    Moses resolves the path from the working directory (moses/StaticData.cpp:221), which may differ from the working
    directory of the decoder. If there is no such file, the path is resolved from the folder of the ini file. A warning
    is returned if both files exist and differ.
    """
    in_ini_folder = str(Path(ini).parent / name)
    if not os.path.lexists(name):
        if not os.path.lexists(in_ini_folder):
            raise InputError(f"{place}: {name}: no such file, neither in the working directory nor next to the ini")
        return in_ini_folder, []
    if not (os.path.isfile(name) and os.path.isfile(in_ini_folder)) or filecmp.cmp(name, in_ini_folder, shallow=False):
        return name, []
    return name, [f"{place}: weights are read from {name}, as Moses does, and not from {in_ini_folder}, which differs"]


def _is_sparse_file(lines: Sequence[str]) -> bool:
    """Return whether all lines are `name value` of sparse features.

    If all names end with `=`, the lines are `[weight]` lines of an ini file without the header.
    """
    rows = [words(line) for line in lines]
    return all(is_sparse(row[0], len(row) - 1) for row in rows) and not all(row[0].endswith("=") for row in rows)


def read_dense_weights(path: str) -> Weights:
    """Read a dense weight file without sections, whose features are all tuneable.

    Raises:
        InputError: a line is not `Name= value …`.
    """
    lines = ((place, line.strip(" \t")) for place, line in _placed_lines(path))
    return _parse_dense((place, line) for place, line in lines if line)


def read_sparse_weights(path: str) -> Weights:
    """Read a sparse weight file, such as the file under `[weight-file]` in an ini file.

    Raises:
        InputError: a line is not `name value`.
    """
    return _parse_sparse(_placed_lines(path))


def _parse_sparse(lines: Iterable[tuple[str, str]]) -> Weights:
    """Parse lines as FVector::load: the first word is the name, and the last line of a name wins.

    A `#` starts a comment at the start of a line or of the third word.
    """
    weights: Weights = {}
    for place, line in lines:
        parts = words(line)
        if not parts or line.startswith("#"):
            continue
        if len(parts) != 2 and not (len(parts) > 2 and parts[2].startswith("#")):
            raise InputError(f"{place}: expected 'name value' of a sparse feature, found {shown(line)}")
        weights[parts[0]] = _numbers(parts[1:2], parts[0], place)
    return weights


def _parse_dense(lines: Iterable[tuple[str, str]]) -> Weights:
    """Parse lines `Name= value …`.

    If a name is repeated, its values are appended to the earlier ones. A sparse feature keeps only the last value.
    """
    weights: Weights = {}
    for place, line in lines:
        if not _NO_WEIGHT.search(line):
            name, values = _parse(line, place)
            weights[name] = values if is_sparse(name, len(values)) else weights.get(name, ()) + values
    return weights


def names_of_values(name: str, count: int) -> list[str]:
    """Return the name of each value of a feature: `LM` for one value, `LM.0`, `LM.1`, … for several."""
    return [name] if count == 1 else [f"{name}.{number}" for number in range(count)]


def check_weights(weights: Mapping[str, Sequence[float]]) -> Weights:
    """Check weights passed from Python code, and return them as tuples of floats.

    Raises:
        InputError: a name is not a `str`, a feature has no sequence of numbers, or a value is not finite or larger than
            `MAX_VALUE`.
    """
    checked: Weights = {}
    for name, values in weights.items():
        if not isinstance(name, str):
            raise InputError(f"weights: expected names of features as text, found {shown(name)}")
        try:  # iteration over bytes, or over the keys of a mapping, can give numbers too
            own: tuple[Any, ...] = () if isinstance(values, bytes | bytearray | Mapping) else tuple(values)
        except TypeError:
            own = ()
        if not own or not all(isinstance(value, Real) for value in own):
            raise InputError(f"weights of {shown(name)}: expected a sequence of numbers, found {shown(values)}")
        if not all(abs(value) <= MAX_VALUE for value in own):
            fault = f"not finite, or an absolute value exceeds {LIMIT}"
            raise InputError(f"weights of {shown(name)}: {fault}: {shown(values)}")
        checked[name] = tuple(float(value) for value in own)
    return checked


def weighted(hypothesis: Hypothesis, weights: Weights) -> dict[str, float]:
    """Return the contribution w·f of each feature to the score of a line, by feature name.

    Dense features come before sparse features. A feature without weights contributes 0.

    Raises:
        Fault: the weights and the values of a feature differ in number.
    """
    parts: dict[str, float] = {}
    for name, values in (*hypothesis.dense, *((name, (value,)) for name, value in hypothesis.sparse.items())):
        own = weights.get(name, (0.0,) * len(values))
        if len(own) != len(values):
            pair = counted(len(values), "value"), counted(len(own), "weight")
            raise Fault(f"feature {shown(name)} has {' in the list and '.join(pair)}")
        parts[name] = sum(weight * value for weight, value in zip(own, values, strict=True))
    return parts


def write_weights(
    path: str,
    weights: Mapping[str, Sequence[float]],
    comments: Sequence[str],
    untuneable: Mapping[str, Untuneable] = MappingProxyType({}),
) -> None:
    """Write an ini file with a `[weight]` section, which Moses' rescore.py can read as well.

    Args:
        path: of the file.
        weights: of the components that Moses prints in its lists, by feature name.
        comments: lines at the start of the file.
        untuneable: features with components that are not in the lists, by name. Their weights are written too, because
            Moses needs them. The untuneable components are declared under `[feature]`.

    Raises:
        InputError: a weight is not finite or larger than `MAX_VALUE`, or a name is not possible in an ini file.
    """
    weights, declared = with_all_components(weights, untuneable)
    for name, values in weights.items():
        if name.startswith(("[", "#")) or "\t" in name:
            raise InputError(
                f"{path}: an ini cannot hold the name {shown(name)}, which starts with '[' or '#' or contains a tab"
            )
        if not all(abs(value) <= MAX_VALUE for value in values):
            fault = f"is not finite, or its absolute value exceeds {LIMIT}"
            raise InputError(f"{path}: the weight of {shown(name)} {fault}")
    lines = [*(f"# {printable(comment)}" for comment in comments), *declared, "", "[weight]"]
    lines += [f"{name}= {' '.join(f'{value:.9g}' for value in values)}" for name, values in weights.items()]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _parse(line: str, place: str) -> tuple[str, tuple[float, ...]]:
    name, *values = words(line)
    values = words(" ".join(values).partition("#")[0])
    if is_sparse(name, len(values)):
        return name.removesuffix("="), _numbers(values, name, place)
    if not name.endswith("=") or len(name) == 1:
        raise InputError(f"{place}: expected 'Name= value …', found {shown(line)}")
    return name[:-1], _numbers([value for value in values if value != "UNTUNEABLECOMPONENT"], name[:-1], place)


def _numbers(values: Sequence[str], name: str, place: str) -> tuple[float, ...]:
    if not values:
        raise InputError(f"{place}: weights of {shown(name)}: expected numbers, found none")
    with at(f"{place}: "):
        return numbers("weights of", name, values)
