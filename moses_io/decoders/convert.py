"""Conversion of the n-best lists of other decoders to the format of Moses."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from moses_io.decoders.formats import read_candidates, recognize
from moses_io.files.errors import InputError
from moses_io.files.streams import check_plain, open_output
from moses_io.files.text import encode
from moses_io.nbest import read_hypotheses

SCORE = "Score"
"""Label of the decoder's own score."""

MOST_FEATURES = 300
"""Number of features above which those that most candidates do not have are left out."""


class Converted(NamedTuple):
    """Summary of a converted list."""

    form: str
    sentences: int
    candidates: int
    labels: list[str]  # of all features, SCORE first
    left_out: int  # number of features that were left out


def convert(path: str, output: str, form: str = "", source: str = "", weights: str = "", like: str = "") -> Converted:
    """Write a list of another decoder as a list of Moses.

    Args:
        path: the list.
        output: the new list.
        form: one of `FORMATS`, or empty to recognize it.
        source: source text, needed by formats without sentence ids.
        weights: file of initial weights to write, 1 for the decoder's own score and 0 for others, or empty for none.
        like: a converted list of the same decoder with the features to write, or empty for those of this list.

    Raises:
        InputError: the format is unknown, or a line does not have it.
    """
    check_plain(path)  # it is read twice
    form = form or recognize(path)
    if not form:
        raise InputError(f"{path}: no n-best list of a decoder that is known. Name its format with --format")
    counts, different, sentences = Counter[str](), set[str](), set[int]()
    candidates = 0
    for each in read_candidates(path, form, source):
        candidates += 1
        sentences.add(each.sentence)
        counts.update(each.features.keys())
        different |= {name for name, value in each.features.items() if value != each.score}
    if not candidates:
        raise InputError(f"{path}: the list is empty")
    # A feature that is always the score, as `F0` of one model of Marian, would only repeat it.
    names = [name for name in counts if name in different or counts[name] < candidates]
    rare = {name for name in names if counts[name] <= candidates / 2} if len(names) > MOST_FEATURES else set()
    kept = [name for name in names if like or name not in rare]
    by_label = {label: name for name, label in _labels(list(counts) if like else kept).items()}
    labels = _labels_of(like) if like else list(by_label)
    with open_output(output) as stream:
        for each in read_candidates(path, form, source):
            features = [f"{label}= {each.features.get(by_label.get(label, ''), '0')}" for label in labels]
            fields = [str(each.sentence), each.text, " ".join([f"{SCORE}= {each.score}", *features]), each.score]
            stream.write(encode(" ||| ".join([*fields, each.links] if each.links else fields)) + b"\n")
    if weights:
        with open_output(weights) as stream:
            stream.write(encode(f"{SCORE}= 1\n" + "".join(f"{label}= 0\n" for label in labels)))
    left_out = sum(1 for label, name in by_label.items() if name in names and label not in labels)
    return Converted(form, len(sentences), candidates, [SCORE, *labels], left_out + len(names) - len(kept))


def _labels_of(path: str) -> list[str]:
    """Return the labels of a converted list without the score. Raises `InputError` if it is none."""
    first = next(iter(read_hypotheses(path)), None)
    labels = [name for name, values in first.dense if len(values) == 1] if first else []
    if SCORE not in labels:
        raise InputError(f"{path}: no feature {SCORE}, expected a list that `convert` wrote")
    return [label for label in labels if label != SCORE]


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return a label for each name. Labels consist of letters and digits."""
    labels: dict[str, str] = {}
    for name in names:
        plain = re.sub("[^A-Za-z0-9]", "", name)
        base = plain if plain[:1].isalpha() else f"F{plain}"
        taken = {SCORE, *labels.values()}
        candidates = [base, *(f"{base}x{count}" for count in range(2, len(taken) + 3))]
        labels[name] = next(label for label in candidates if label not in taken)
    return labels
