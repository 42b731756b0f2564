"""Weights beside the features that they belong to."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from features.arrays import Array
from features.progress import log
from features.table import is_fixed
from moses_io.files.errors import InputError, at, nearest, shown
from moses_io.files.text import read_lines
from moses_io.hypothesis import UNLABELLED, is_sparse
from moses_io.untuneable import UNKNOWN_WORDS
from moses_io.weights import WeightFile, Weights, read_weight_file
from rerank.linear.candidates import FeatureSpace

START = "the start weights"
"""What weights are called that were not tuned, also above them in their file."""


def fingerprint(weights: Weights) -> str:
    """Return what tells weights from others."""
    return hashlib.sha256(repr(sorted(weights.items())).encode()).hexdigest()[:12]


def kept_start(path: str) -> list[str]:
    """Return the line that `tune` wrote above weights which are those that it started from, or nothing."""
    return [line[2:] for line in read_lines(path) if line.startswith(f"# {START}")]


def load_weight_file(path: str) -> WeightFile:
    """Read a weight file, and warn of what may be wrong with it."""
    content = read_weight_file(path)
    for warning in content.warnings:
        log.warning(warning)
    return content


def load_weights(path: str) -> Weights:
    """Return the weights in a file; see `load_weight_file`."""
    return load_weight_file(path).weights


def read_start(path: str, space: FeatureSpace) -> Weights:
    """Read the initial weights; see `fit_start`."""
    return fit_start(load_weight_file(path), space)


def fit_start(content: WeightFile, space: FeatureSpace) -> Weights:
    """Return the initial weights of the features of a list.

    The file holds weights by name, or is an `init.opt` of mert: numbers alone, of which the first line is the start.

    Raises:
        InputError: it cannot be read, or has not as many numbers as the list, or one of its features, has values.
    """
    weights, path = content.weights, content.files[0]
    if list(weights) == [UNLABELLED] and UNLABELLED not in space.columns:
        values = weights[UNLABELLED]
        if len(values) != space.dense_size:
            raise InputError(f"{path}: expected {space.dense_size} start weights, found {len(values)}")
        weights = space.weights(np.array([*values, *[0.0] * len(space.sparse)]))
    weights = with_rest(weights, space)
    with at(f"{path}: "):
        space.vector(weights)
    return weights


def with_unseen(tuned: Weights, start: Weights, space: FeatureSpace) -> Weights:
    """Return tuned weights with the initial weights of sparse features that no candidate has.

    Other lists may have them. They are multiplied by what tuning did to the sizes of the dense weights, as their
    candidates are compared by sums with these.
    """
    before, after = (np.abs(space.vector(weights)[: space.dense_size]).sum() for weights in (start, tuned))  # ()
    scale = float(after / before) if before and after else 1.0
    seen = set(space.sparse)
    unseen = {name: own[0] for name, own in start.items() if is_sparse(name, len(own)) and name not in seen}
    return {**tuned, **{name: (scale * value,) for name, value in unseen.items() if value}}


def with_rest(weights: Weights, space: FeatureSpace) -> Weights:
    """Return the weights with 1 for a feature `rest` that has none: it is a part of Moses' total and never tuned."""
    return dict.fromkeys(_rest(space), (1.0,)) | weights


def _rest(space: FeatureSpace) -> list[str]:
    return [name for name, _ in space.dense if is_fixed(name)]


def limits(space: FeatureSpace, start: Array, sign: Sequence[str], freeze: Sequence[str]) -> tuple[Array, Array]:
    """(size,) smallest and largest weights, by signs `NAME:+` or `NAME:-`.

    Those to freeze keep their (size,) start, and so does a feature `rest`.

    Raises:
        InputError: no such feature, or no such sign.
    """
    lower, upper = np.full(space.size, -np.inf), np.full(space.size, np.inf)
    for text in sign:
        name, _, side = text.rpartition(":")
        if side not in ("+", "-"):
            raise InputError(f"sign {shown(text)}: expected NAME:+ or NAME:-")
        (lower if side == "+" else upper)[_places(space, name)] = 0
    for name in (*freeze, *_rest(space)):
        if name in space.sparse:
            raise InputError(f"freeze: {shown(name)} is a sparse feature; only dense ones can be frozen")
        places = _places(space, name)
        lower[places] = upper[places] = start[places]
    return lower, upper


def _places(space: FeatureSpace, name: str) -> list[int]:
    """Return the columns of a feature."""
    if name not in space.columns:
        raise InputError(f"the list has no feature {shown(name)}{nearest(name, sorted(set(space.columns)))}")
    return [place for place, other in enumerate(space.columns) if other == name]


def tell_unmatched(space: FeatureSpace, weights: Weights, path: str) -> None:
    """Say which features start at 0 and which weights find no feature.

    Raises:
        InputError: no feature of the list has a weight at all.
    """
    names = list(dict.fromkeys(space.columns))
    if names and not any(name in weights for name in names):
        has = f"the list has {', '.join(names[:20])}{hint_for(names)}"
        raise InputError(f"{path}: no feature of the list has a weight here; {has}")
    if new := [name for name, _ in space.dense if name not in weights]:
        log.info(f"features without a weight in {path} start at 0: {', '.join(new)}")
    if unused := unused_weights(space, weights):
        log.warning(f"weights in {path} without a feature in the list: {', '.join(unused)}")


def hint_for(names: Iterable[str]) -> str:
    """Return how to name the weights of a list without labels, nothing if it has some."""
    line = f"a line '{UNLABELLED}= …', in the order of `moses -show-weights`"
    return f"; the list has no labels: give its weights {line}" if UNLABELLED in names else ""


def unused_weights(space: FeatureSpace, weights: Weights) -> list[str]:
    """Return the dense weights that no feature of the list has; a program may name that of unknown words, too."""
    dense = {name for name, _ in space.dense}
    unused = [name for name, values in weights.items() if name not in dense and not is_sparse(name, len(values))]
    return [name for name in unused if not name.startswith(UNKNOWN_WORDS)]
