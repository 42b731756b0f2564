"""Weights by name, matched with the features of a list."""

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
from moses_io.weights import OLD_NAMES, WeightFile, Weights, read_weight_file
from rerank.linear.candidates import FeatureSpace

INITIAL = "the initial weights"
"""Name of the initial weights in messages, reports and the header of a weight file."""


def fingerprint(weights: Weights) -> str:
    """Return a short hash that identifies the weights."""
    return hashlib.sha256(repr(sorted(weights.items())).encode()).hexdigest()[:12]


def kept_initial_weights(path: str) -> list[str]:
    """Return the header lines by which `tune` marks that it kept the initial weights, if any."""
    return [line[2:] for line in read_lines(path) if line.startswith(f"# {INITIAL}")]


def load_weight_file(path: str) -> WeightFile:
    """Read a weight file and log the warnings about its content."""
    content = read_weight_file(path)
    for warning in content.warnings:
        log.warning(warning)
    return content


def load_weights(path: str) -> Weights:
    """Return the weights in a file by name and log the warnings about its content."""
    return load_weight_file(path).weights


def read_initial_weights(path: str, space: FeatureSpace) -> Weights:
    """Read a file of initial weights and match them with the features of a list, as `match_initial_weights` does."""
    return match_initial_weights(load_weight_file(path), space)


def match_initial_weights(content: WeightFile, space: FeatureSpace) -> Weights:
    """Return the initial weights of the features of a list by name.

    The file has weights by name, or it is mert's `init.opt`, in which the first line has the initial weights in list
    order, without names. A feature that the list has is tuneable, whatever Moses' default for its type is.

    Raises:
        InputError: the number of weights differs from the number of values of the list or of one of its features.
    """
    weights, path = content.weights, content.files[0]
    if list(weights) == [UNLABELLED] and UNLABELLED not in space.columns:
        values = weights[UNLABELLED]
        # With sparse features, init.opt ends with the initial value of their common factor.
        if len(values) not in (space.dense_size, space.dense_size + bool(space.sparse)):
            raise InputError(f"{path}: expected {space.dense_size} initial weights, found {len(values)}")
        weights = space.weights(np.array([*values[: space.dense_size], *[0.0] * len(space.sparse)]))
    count = dict(space.dense).get(UNLABELLED)
    if list(weights) == [UNLABELLED] and count and space.sparse and len(weights[UNLABELLED]) == count + 1:
        weights = {UNLABELLED: weights[UNLABELLED][:count]}
    further = content.further_weights(space.dense)
    if unweighted := [name for name in further if name in content.unweighted]:
        log.info(f"{path}: features without weights have weight 1, as in Moses: {', '.join(unweighted)}")
    weights = with_rest(further | weights, space)
    with at(f"{path}: "):
        space.vector(weights)
    return weights


def weights_for(content: WeightFile, space: FeatureSpace) -> Weights:
    """Return the weights in a file and those that Moses uses for further features of a list, by name."""
    return with_rest(content.further_weights(space.dense) | content.weights, space)


def with_unseen(tuned: Weights, initial: Weights, space: FeatureSpace) -> Weights:
    """Return tuned weights plus the initial weights of sparse features that no candidate of the tuning set has.

    Other lists may have these features. Their weights are multiplied by the ratio of the absolute sums of the dense
    weights after and before tuning, so that they keep their size relative to the dense weights.
    """
    before, after = (np.abs(space.vector(weights)[: space.dense_size]).sum() for weights in (initial, tuned))  # ()
    scale = float(after / before) if before and after else 1.0
    seen = set(space.columns)  # a dense feature may have `_` in its name too, if it comes from Moses' extractor
    unseen = {name: values[0] for name, values in initial.items() if is_sparse(name, len(values)) and name not in seen}
    return {**tuned, **{name: (scale * value,) for name, value in unseen.items() if value}}


def with_rest(weights: Weights, space: FeatureSpace) -> Weights:
    """Return the weights, with weight 1 for a `rest` feature that has no weight.

    A `rest` feature is the part of Moses' total that the printed features do not explain. It is never tuned.
    """
    return dict.fromkeys(_rest(space), (1.0,)) | weights


def _rest(space: FeatureSpace) -> list[str]:
    return [name for name, _ in space.dense if is_fixed(name)]


def limits(space: FeatureSpace, initial: Array, sign: Sequence[str], freeze: Sequence[str]) -> tuple[Array, Array]:
    """Return the (size,) lower and upper bounds of the weights.

    Args:
        space: order of the features.
        initial: (size,) initial weights.
        sign: `NAME:+` for weights that must not be negative, `NAME:-` for weights that must not be positive.
        freeze: names of dense features that keep their initial weights. A `rest` feature always does.

    Raises:
        InputError: a name is not a feature, a sign is neither `+` nor `-`, or a feature to freeze is sparse.
    """
    lower, upper = np.full(space.size, -np.inf), np.full(space.size, np.inf)
    for text in sign:
        name, _, side = text.rpartition(":")
        if side not in ("+", "-"):
            raise InputError(f"sign {shown(text)}: expected NAME:+ or NAME:-")
        (lower if side == "+" else upper)[_columns_of(space, name)] = 0
    for name in (*freeze, *_rest(space)):
        if name in space.sparse:
            raise InputError(f"freeze: {shown(name)} is a sparse feature. Only dense ones can be frozen")
        columns = _columns_of(space, name)
        lower[columns] = upper[columns] = initial[columns]
    return lower, upper


def _columns_of(space: FeatureSpace, name: str) -> list[int]:
    """Return the column indices of a feature."""
    if name not in space.columns:
        raise InputError(f"the list has no feature {shown(name)}{nearest(name, sorted(set(space.columns)))}")
    return [column for column, other in enumerate(space.columns) if other == name]


def log_unmatched(space: FeatureSpace, weights: Weights, path: str) -> None:
    """Log the features without an initial weight, which start at 0, and the weights without a feature.

    Raises:
        InputError: no feature of the list has a weight.
    """
    names = list(dict.fromkeys(space.columns))
    if names and not any(name in weights for name in names):
        has = f"The list has {', '.join(names[:20])}{hint_for(names, space, weights)}"
        raise InputError(f"{path}: no feature of the list has a weight here. {has}")
    if new := [name for name, _ in space.dense if name not in weights]:
        log.info(f"features without a weight in {path} start at 0: {', '.join(new)}")
    if unused := unused_weights(space, weights):
        log.warning(f"weights in {path} without a feature in the list: {', '.join(unused)}")


def hint_for(names: Iterable[str], space: FeatureSpace, weights: Weights) -> str:
    """Return a hint on why features of a list have no weights: no labels, or weights with the names of an old ini.

    Args:
        names: features without weights.
        space: features of the list.
        weights: weights of other features.

    Returns:
        A sentence after a full stop, or "" if the reason is unknown.
    """
    if UNLABELLED in names:
        line = f"a line '{UNLABELLED}= …', in the order of `moses -show-weights`"
        return f". The list has no labels: write its weights in {line}"
    own = {name for name in weights if not is_fixed(name)}
    if not own or not own <= OLD_NAMES or not own.isdisjoint(space.columns):
        return ""
    old = "The ini file is from before 2013, and present Moses uses other names"
    return f". {old}. Take the weights from `moses -show-weights`"


def unused_weights(space: FeatureSpace, weights: Weights) -> list[str]:
    """Return the names of dense weights without a feature in the list.

    The weight of Moses' unknown-word penalty is never reported: the decoder may name it although the list lacks it.
    """
    dense = {name for name, _ in space.dense}
    unused = [name for name, values in weights.items() if name not in dense and not is_sparse(name, len(values))]
    return [name for name in unused if not name.startswith(UNKNOWN_WORDS)]
