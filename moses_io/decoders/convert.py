"""Conversion of the n-best lists of other decoders to the format of Moses."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moses_io.decoders.formats import Candidate, read_candidates, recognize
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import STANDARD, check_plain, numbered_lines, open_output
from moses_io.files.text import encode, read_lines
from moses_io.filters import Filters
from moses_io.nbest import read_hypotheses
from moses_io.weights import write_weights

SCORE = "Score"
"""Label of the decoder's own score."""

MAX_FEATURES = 300
"""Maximum number of features. If a list has more, those that at most half of its candidates have are left out."""


SPARSE = ("joshua", "cdec", "travatar")
"""Formats whose candidates may lack features with the value 0."""


class Converted(NamedTuple):
    """Summary of a converted list."""

    format_name: str
    sentences: int
    candidates: int
    labels: list[str]  # of all features, the score first
    left_out: int  # number of features that were left out
    absent: list[str]  # labels of the earlier list that no candidate has


def convert(
    path: str,
    output: str,
    format_name: str = "",
    source: str = "",
    filters: str = "",
    label: str = SCORE,
    like: str = "",
    weights: str = "",
) -> Converted:
    """Write a list of another decoder as a list of Moses.

    Args:
        path: the list.
        output: the new list.
        format_name: one of `FORMATS`, or empty to recognize it.
        source: source text, needed by formats without sentence ids.
        filters: names of filters for the texts, such as `debpe`.
        label: label of the decoder's own score. If it is not `SCORE`, the labels of other features begin with it.
        like: a converted list of the same decoder with the features to write, or empty for those of this list.
        weights: file of initial weights to write, 1 for the decoder's own score and 0 for others, or empty for none.

    Raises:
        InputError: the format is unknown, a line does not have it, or two features would have the same label.
    """
    if path == STANDARD:
        raise InputError("-: `convert` reads the list twice. Name a file")
    check_plain(path)
    format_name = format_name or recognize(path)
    if not format_name and not any(line.strip() for _, line in numbered_lines(path)):
        raise InputError(f"{path}: the list is empty")
    if not format_name:
        raise InputError(f"{path}: unknown format. If it is an n-best list of a known decoder, name it with --format")
    sources, change = read_lines(source) if source else None, Filters(filters)
    counts, copies, sentences, candidates = _survey(read_candidates(path, format_name, sources))
    if not candidates:
        raise InputError(f"{path}: the list is empty")
    wanted = _labels_of(like, label) if like else None
    columns = _columns(list(counts) if like else _usual(counts, copies, candidates), label, wanted)
    labels = list(columns) if wanted is None else wanted
    with open_output(output) as stream:
        for each in read_candidates(path, format_name, sources):
            lacking = columns.values() - each.features.keys()
            if lacking and format_name not in SPARSE:
                fault = f"a candidate lacks {shown(min(lacking))}, which other candidates have"
                raise InputError(f"{path}: sentence {each.sentence}: {fault}")
            values = [f"{column}= {each.features.get(columns.get(column, ''), '0')}" for column in labels]
            features = " ".join([f"{label}= {each.score}", *values])
            text = change(each.text)
            if "|||" in text:
                made = f"the filter {filters} makes '|||', which Moses' format cannot have"
                raise InputError(f"{path}: sentence {each.sentence}: {made}: {shown(each.text)}")
            fields = [str(each.sentence), text, features, each.score]
            stream.write(encode(" ||| ".join(fields)) + b"\n")
    if weights:
        write_weights(weights, {each: (float(each == label),) for each in [label, *labels]}, ["initial weights"])
    left_out = len(counts.keys() - copies - set(columns.values()))
    absent = [each for each in labels if each not in columns]
    return Converted(format_name, sentences, candidates, [label, *labels], left_out, absent)


def _survey(candidates: Iterable[Candidate]) -> tuple[dict[str, int], set[str], int, int]:
    """Return the counts of features, sentences and candidates.

    Returns:
        (number of candidates by feature, features that always equal the score, number of sentences, number of
        candidates).
    """
    counts, different, sentences, total = Counter[str](), set[str](), set[int](), 0
    for each in candidates:
        total += 1
        sentences.add(each.sentence)
        counts.update(each.features.keys())
        different |= {name for name, value in each.features.items() if value != each.score}
    copies = {name for name, count in counts.items() if count == total and name not in different}
    return dict(counts), copies, len(sentences), total


def _usual(counts: dict[str, int], copies: set[str], candidates: int) -> list[str]:
    """Return the features to write if no earlier list determines them.

    A feature that always equals the score, as `F0` of one model of Marian, would only repeat it and is left out.
    """
    rare = len(counts) - len(copies) > MAX_FEATURES
    return [name for name, count in counts.items() if name not in copies and (not rare or count > candidates / 2)]


def _labels_of(path: str, label: str) -> list[str]:
    """Return the labels of a converted list without its score. Raises `InputError` if it has no such score."""
    first = next(iter(read_hypotheses(path)), None)
    labels = [name for name, values in first.dense if len(values) == 1] if first else []
    if label not in labels:
        raise InputError(f"{path}: no feature {label}, expected a list that `convert` wrote with this label")
    return [each for each in labels if each != label]


def _columns(names: Sequence[str], score: str, wanted: Sequence[str] | None) -> dict[str, str]:
    """Return the name of each feature by its label, which consists of letters and digits.

    Args:
        names: names of the features.
        score: label of the decoder's own score.
        wanted: labels of the features to return, or None for all.

    Raises:
        InputError: two features have the same label.
    """
    prefix, columns = "" if score == SCORE else score, dict[str, str]()
    for name in names:
        plain = re.sub("[^A-Za-z0-9]", "", name)
        label = prefix + (plain if plain[:1].isalpha() or prefix else f"F{plain}")
        if wanted is not None and label not in wanted:
            continue
        if label in columns or label == score:
            other = columns.get(label, "the decoder's own score")
            raise InputError(f"{shown(name)} and {shown(other)} would have the same label {label}. Rename one of them")
        columns[label] = name
    return columns
