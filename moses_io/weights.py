"""Weights: the sections of `moses.ini` and `rescore.ini`, and dense and sparse weight files."""

import filecmp
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from moses_io.errors import Fault, InputError, counted, printable, shown
from moses_io.hypothesis import UNLABELLED, Hypothesis, is_sparse
from moses_io.streams import STANDARD, check_plain, name_of
from moses_io.text import LARGEST, no_number, number, stream_lines, tokens, write_text

UNKNOWN_WORDS = "UnknownWordPenalty"
"""Type of the feature that Moses never tunes and never prints, and start of its name."""

_NO_WEIGHT = re.compile(r"(^[^ ]+=( UNTUNEABLECOMPONENT)*| UNTUNEABLE)$")
_COMMENT = re.compile(r"(^|[ \t])#.*")

_OLD_LABELS = {
    "weight-bl": "bl",
    "weight-d": "d",
    "weight-dlm": "dlm",
    "weight-e": "e",
    "weight-generation": "g",
    "weight-glm": "glm",
    "weight-i": "I",
    "weight-l": "lm",
    "weight-lex": "lex",
    "weight-lr": "lr",
    "weight-p": "p",
    "weight-pb": "pb",
    "weight-pp": "pp",
    "weight-slm": "slm",
    "weight-t": "tm",
    "weight-u": f"{UNKNOWN_WORDS}0",
    "weight-w": "w",
    "weight-wt": "wt",
}
"""Sections from before 2013 (moses/Parameter.cpp), and the label in the lists of that time; unknown words have none."""

_UNTUNEABLE_TYPES = (
    "BleuScoreFeature",
    "ConstrainedDecoding",
    "HyperParameterAsWeight",
    "MaxSpanFreeNonTermSource",
    "NieceTerminal",
    "SetSourcePhrase",
    "SyntaxRHS",
    UNKNOWN_WORDS,
)
"""Types of features that set `m_tuneable = false` in their constructors (moses/FF)."""

_BOOLEANS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
"""What Moses reads as a boolean, in lower case (Scan<bool> of moses/Util.cpp)."""

Weights = dict[str, tuple[float, ...]]
"""Values of each feature, dense or sparse, by its name without `=`."""


@dataclass(frozen=True)
class Untuneable:
    """A feature with components that Moses neither tunes nor prints.

    Attributes:
        type: of the feature, the first word of its line under `[feature]`.
        weights: of all its components; None for one that Moses tunes.
    """

    type: str
    weights: tuple[float | None, ...]


@dataclass(frozen=True)
class WeightFile:
    """The content of a weight file.

    Attributes:
        weights: of the components that Moses prints in its lists.
        untuneable: features with components that Moses does not print, by name.
        files: paths of all files that were read.
        warnings: what may be wrong with them.
    """

    weights: Weights
    untuneable: dict[str, Untuneable] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_weights(path: str) -> Weights:
    """Read the weights of a file; see `read_weight_file`."""
    return read_weight_file(path).weights


def weight_files(path: str) -> list[str]:
    """Return all files that `read_weights` reads: this one, and that which `[weight-file]` names."""
    return list(read_weight_file(path).files)


def read_weight_file(path: str) -> WeightFile:
    """Read weights in any form that Moses and its tools write.

    * An ini gives the weights under `[weight]`; of two lines with one name the later wins, as in Moses. Weights under
      `[weight-add]`, and of the sparse weight file that `[weight-file]` names, come before them, and those under
      `[weight-overwrite]` behind them. Values under `[weight-d]`, `[weight-l]` and the like (before 2013) belong to the
      labels d, lm and so on. What `[feature]` declares untuneable is kept apart.
    * A dense weight file, without sections, repeats a name for each of its values (`runN.dense` of mert-moses.pl).
    * A sparse weight file has lines `name value`; the name is the first word as it is, the later of two values counts
      (FVector::load in moses/FeatureVector.cpp).
    * Of lines of numbers alone (`init.opt` of mert) the first has the weights of features without a name.

    `UNTUNEABLE` and names without values (`moses -show-weights`) are skipped. `#` opens a comment at the start of a
    line or after a blank.

    Raises:
        InputError: a line cannot be read, or there is no weight at all.
    """
    if path != STANDARD:
        check_plain(path)
    raw = list(enumerate(stream_lines(path), start=1))
    uncommented = ((place, _COMMENT.sub("", line).strip(" \t")) for place, line in raw)
    lines = [(place, line) for place, line in uncommented if line]
    if any(line.startswith("[") for _, line in lines):
        content = _read_ini(path, lines)
    elif lines and all(number(token) is not None for token in _words(lines[0][1])):
        content = WeightFile({UNLABELLED: tuple(float(token) for token in _words(lines[0][1]))}, files=(path,))
    elif _is_sparse_file([line for _, line in lines]):
        content = WeightFile(_parse_sparse(path, raw), files=(path,))
    else:
        content = WeightFile(*_split_untuneable(_parse_dense(path, lines), {}), files=(path,))
    if not content.weights:
        raise InputError(f"{name_of(path)}: no weights; expected lines 'Name= 0.1 0.2', in an ini under [weight]")
    return content


def _read_ini(path: str, lines: Sequence[tuple[int, str]]) -> WeightFile:
    """Read the sections of an ini; its lines are without comments."""
    sparse: Weights = {}
    added: Weights = {}
    weights: Weights = {}
    files, warnings, features, section = [path], list[str](), list[tuple[str, str]](), ""
    overwriting: list[tuple[str, str]] = []
    for line_number, line in lines:
        place = f"{name_of(path)}:{line_number}"
        if line.startswith("["):
            section = line[1:].split("]")[0]
        elif section == "weight-file":
            found, warning = _find_sparse_file(_words(line)[-1], path, place)
            sparse = read_sparse_weights(found)
            files.append(found)
            warnings += warning
        elif section == "feature":
            features.append((place, line))
        elif section in ("weight", "weight-add") and not _NO_WEIGHT.search(line):
            name, values = _parse(line, place)
            (weights if section == "weight" else added)[name] = values
        elif section == "weight-overwrite":
            overwriting += [(place, word) for word in _words(line)]
        elif section in _OLD_LABELS:
            label = _OLD_LABELS[section]
            weights[label] = weights.get(label, ()) + _numbers([line], label, place)
    weights = _overwritten(added | weights, overwriting)
    visible, untuneable = _split_untuneable(weights, _declare(features))
    return WeightFile(sparse | visible, untuneable, tuple(files), tuple(warnings))


def _overwritten(weights: Weights, words: Sequence[tuple[str, str]]) -> Weights:
    """Return the weights with those of `[weight-overwrite]`: `Name= 1 x 2 …`, where `x` keeps a component.

    Args:
        weights: of the other sections.
        words: each with its place, of all lines of the section.
    """
    named: dict[str, list[str]] = {}
    for place, word in words:
        if word.endswith("=") and len(word) > 1:
            named[word[:-1]] = []
        elif not named:
            raise InputError(f"{place}: expected 'Name= value …', found {shown(word)}")
        else:
            named[list(named)[-1]].append(word)
    overwritten = dict(weights)
    for name, values in named.items():
        kept = weights.get(name, ())
        texts = [f"{kept[i]!r}" if value == "x" and i < len(kept) else value for i, value in enumerate(values)]
        overwritten[name] = _numbers(texts, name, words[0][0])
    return overwritten


def _find_sparse_file(name: str, ini: str, place: str) -> tuple[str, list[str]]:
    """Return the path of the sparse weight file that an ini names, and a warning if there are two.

    Moses resolves the path from the working directory (moses/StaticData.cpp:221), which may no longer be the one of the
    decoder.
    """
    beside = str(Path(ini).parent / name)
    if not os.path.lexists(name):
        if not os.path.lexists(beside):
            raise InputError(f"{place}: {name}: no such file, neither in the working directory nor next to the ini")
        return beside, []
    if not (os.path.isfile(name) and os.path.isfile(beside)) or filecmp.cmp(name, beside, shallow=False):
        return name, []
    return name, [f"{place}: weights are read from {name}, as Moses does, and not from {beside}, which differs"]


class _Declared(NamedTuple):
    """A feature as its line under `[feature]` declares it.

    Attributes:
        type: first word of the line.
        tuneable: for each component whether Moses tunes it; empty if it tunes none, None if it tunes all.
        place: file and line, for messages.
    """

    type: str
    tuneable: tuple[bool, ...] | None
    place: str


def _split_untuneable(weights: Weights, declared: Mapping[str, _Declared]) -> tuple[Weights, dict[str, Untuneable]]:
    """Split weights into those of components that Moses prints, and features with other components.

    A component without a weight has weight 1, as in Moses.
    """
    visible, untuneable = dict(weights), dict[str, Untuneable]()
    for name in {**weights, **declared}:
        unknown_words = _Declared(UNKNOWN_WORDS, (), "") if name.startswith(UNKNOWN_WORDS) else None
        feature = declared.get(name, unknown_words)
        if feature is None or feature.tuneable is None:
            continue
        values = visible.pop(name, None)
        if not feature.tuneable:
            if values is not None:
                untuneable[name] = Untuneable(feature.type, values)
            continue
        if values is not None and len(values) != len(feature.tuneable):
            sizes = f"{counted(len(values), 'weight')} and tuneable-components for {len(feature.tuneable)}"
            raise InputError(f"{feature.place}: feature {shown(name)} has {sizes}")
        both = list(zip(values or (1.0,) * len(feature.tuneable), feature.tuneable, strict=True))
        untuneable[name] = Untuneable(feature.type, tuple(None if tuned else weight for weight, tuned in both))
        if values is not None:
            visible[name] = tuple(weight for weight, tuned in both if tuned)
    return visible, untuneable


def _declare(features: Sequence[tuple[str, str]]) -> dict[str, _Declared]:
    """Return features by name from (place, line under `[feature]`).

    A feature without a name is called as its type and a number (moses/FF/FeatureFunction.cpp, ParseLine).
    """
    declared, unnamed = dict[str, _Declared](), Counter[str]()
    for place, line in features:
        kind, *arguments = _words(line)
        values = {key: value for key, _, value in (argument.partition("=") for argument in arguments)}
        name = values.get("name") or f"{kind}{unnamed[kind]}"
        unnamed[kind] += not values.get("name")
        components = values.get("tuneable-components")
        tuneable: tuple[bool, ...] | None = None
        if not _boolean(values.get("tuneable", str(kind not in _UNTUNEABLE_TYPES)), place):
            tuneable = ()
        elif components is not None:
            tuneable = tuple(_boolean(value, place) for value in components.split(","))
            tuneable = None if all(tuneable) else tuneable if any(tuneable) else ()
        declared[name] = _Declared(kind, tuneable, place)
    return declared


def _boolean(text: str, place: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise InputError(f"{place}: expected true or false, found {shown(text)}")
    return _BOOLEANS[text.lower()]


def _is_sparse_file(lines: Sequence[str]) -> bool:
    """Return whether all lines are `name value` of sparse features.

    Where all names end with `=` they are lines of an ini without its header.
    """
    rows = [_words(line) for line in lines]
    return all(is_sparse(row[0], len(row) - 1) for row in rows) and not all(row[0].endswith("=") for row in rows)


def read_sparse_weights(path: str) -> Weights:
    """Read a sparse weight file, such as `[weight-file]` names.

    Raises:
        InputError: a line is not `name value`.
    """
    check_plain(path)
    return _parse_sparse(path, enumerate(stream_lines(path), start=1))


def _parse_sparse(path: str, lines: Iterable[tuple[int, str]]) -> Weights:
    """Parse lines as FVector::load does: the first word is the name; only a `#` at the start opens a comment."""
    weights: Weights = {}
    for line_number, line in lines:
        words = _words(line)
        if not words or line.startswith("#"):
            continue
        place = f"{name_of(path)}:{line_number}"
        if len(words) != 2 and not (len(words) > 2 and words[2].startswith("#")):
            raise InputError(f"{place}: expected 'name value' of a sparse feature, found {shown(line)}")
        weights[words[0]] = _numbers(words[1:2], words[0], place)
    return weights


def _parse_dense(path: str, lines: Iterable[tuple[int, str]]) -> Weights:
    """Parse lines `Name= value …`; a name that comes again has further values, that of a sparse feature another one."""
    weights: Weights = {}
    for line_number, line in lines:
        if not _NO_WEIGHT.search(line):
            name, values = _parse(line, f"{name_of(path)}:{line_number}")
            weights[name] = values if is_sparse(name, len(values)) else weights.get(name, ()) + values
    return weights


def _words(line: str) -> list[str]:
    return tokens(line.replace("\t", " "))


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
        if not isinstance(name, str):
            raise InputError(f"weights: expected names of features as text, found {shown(name)}")
        own = _listed(values)
        if not own or not all(isinstance(value, Real) for value in own):
            raise InputError(f"weights of {shown(name)}: expected a sequence of numbers, found {shown(values)}")
        if not all(abs(value) <= LARGEST for value in own):
            raise InputError(f"weights of {shown(name)}: not finite, or larger than {LARGEST:.2g}: {shown(values)}")
        checked[name] = tuple(float(value) for value in own)
    return checked


def _listed(values: object) -> tuple[Any, ...]:
    """Return the values of a sequence; none of anything else, such as text or an array without axes."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        return ()
    try:
        return tuple(values)
    except TypeError:
        return ()


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


def write_weights(
    path: str,
    weights: Mapping[str, Sequence[float]],
    comments: Sequence[str],
    untuneable: Mapping[str, Untuneable] = MappingProxyType({}),
) -> None:
    """Write an ini with a `[weight]` section, comments in front, that Moses' rescore.py reads too.

    The weights of `untuneable` features are written with the others, as Moses needs them; what lists do not have of
    them is declared under `[feature]`.

    Raises:
        InputError: a weight that is not finite, or a name that an ini cannot carry.
    """
    weights, declared = _with_all_components(weights, untuneable)
    for name, values in weights.items():
        if name.startswith(("[", "#")) or "\t" in name:
            raise InputError(
                f"{path}: an ini cannot carry the name {shown(name)}, with '[' or '#' in front or a tab in it"
            )
        if not all(abs(value) <= LARGEST for value in values):
            raise InputError(f"{path}: the weight of {shown(name)} is not finite, or larger than {LARGEST:.2g}")
    lines = [*(f"# {printable(comment)}" for comment in comments), *declared, "", "[weight]"]
    lines += [f"{name}= {' '.join(f'{value:.9g}' for value in values)}" for name, values in weights.items()]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _with_all_components(
    weights: Mapping[str, Sequence[float]], untuneable: Mapping[str, Untuneable]
) -> tuple[dict[str, Sequence[float]], list[str]]:
    """Return weights of all components, and lines under `[feature]` that declare which of them are untuneable.

    Of a feature called UnknownWordPenalty0 it need not be declared that it is untuneable, but that it is tuneable.
    """
    complete, lines = dict(weights), list[str]()
    for name in weights:
        if name.startswith(UNKNOWN_WORDS):
            lines.append(f"{UNKNOWN_WORDS} name={name} tuneable=true")
    for name, feature in untuneable.items():
        tuned = iter(weights.get(name, ()))
        if None not in feature.weights and name not in weights:
            complete[name] = [weight for weight in feature.weights if weight is not None]
            if not name.startswith(UNKNOWN_WORDS):
                lines.append(f"{feature.type} name={name} tuneable=false")
        elif len(weights.get(name, ())) == feature.weights.count(None) > 0:
            complete[name] = [next(tuned) if weight is None else weight for weight in feature.weights]
            components = ",".join("true" if each is None else "false" for each in feature.weights)
            lines.append(f"{feature.type} name={name} tuneable-components={components}")
    return complete, ["", "[feature]", *lines] if lines else []


def _parse(line: str, place: str) -> tuple[str, tuple[float, ...]]:
    name, *values = _words(line)
    values = _words(" ".join(values).partition("#")[0])
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
