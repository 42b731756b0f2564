"""Weights beside the features that they belong to."""

import numpy as np

from features.progress import note
from moses_io.errors import InputError
from moses_io.hypothesis import UNLABELLED
from moses_io.weights import Weights
from rerank.candidates import Array, FeatureSpace

UNTUNEABLE = "UnknownWordPenalty"
"""Moses never prints this one; its part of the total is left out of our score."""


def normalized(weights: Array, dense: int) -> Array:
    """Divide weights by the absolute sum of the dense ones, as Moses does; of all where there are no dense ones."""
    total = np.abs(weights[:dense] if dense else weights).sum()
    result: Array = weights / total if total else weights
    return result


def compare(space: FeatureSpace, weights: Weights, path: str) -> None:
    """Say which features start at 0 and which weights find no feature.

    Raises:
        InputError: no feature of the list has a weight at all.
    """
    names = [name for name, _ in space.dense] + list(space.sparse)
    new = [name for name, _ in space.dense if name not in weights]
    if names and not any(name in weights for name in names):
        hint = f"; give its weights a line '{UNLABELLED}= …'" if UNLABELLED in names else ""
        raise InputError(
            f"{path}: no feature of the list has a weight here; the list has {', '.join(names[:20])}{hint}"
        )
    if new:
        note(f"features without a weight in {path} start at 0: {', '.join(new)}")
    unused = unused_weights(space, weights)
    if unused:
        note(f"warning: weights in {path} without a feature in the list: {', '.join(unused)}")


def unused_weights(space: FeatureSpace, weights: Weights) -> list[str]:
    """Return the dense weights that no feature of the list has, but for those that Moses never prints."""
    names = {name for name, _ in space.dense}
    return [name for name in weights if name not in names and "_" not in name and not name.startswith(UNTUNEABLE)]
