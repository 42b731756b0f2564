"""Self-attention along the paths of a prefix tree: each node attends to itself and to the nodes above it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.device import on_device


class Block(NamedTuple):
    """P paths, and the last M nodes of each path, whose attention is computed.

    A node is on many paths, but only one of them computes its attention.
    """

    keys: Tensor  # (P·T,) node at each position of the paths, arbitrary after the end of a path
    queries: Tensor  # (P·M,) nodes that attend
    bias: Tensor  # (P, M, T) 0 where attention is allowed, minus infinity elsewhere
    computed: Tensor  # (C,) queries whose results are kept
    nodes: Tensor  # (C,) the nodes of these queries


def blocks_of(paths: Sequence[Integers], size: int, device: torch.device) -> Iterator[Block]:
    """Yield blocks of about `size` positions, which together compute each node once.

    Args:
        paths: the nodes of each path, from a root on.
        size: P·T of a block, at most, except for a single path.
        device: device of the tensors.
    """
    lengths = np.array([len(path) for path in paths])  # (paths,)
    new = _new_nodes(paths)  # (paths,)
    # Paths with equally many new nodes, and of similar length, share a block.
    order = np.lexsort((lengths, new))  # (paths,)
    order = order[np.searchsorted(new[order], 1) :]
    start = 0
    while start < len(order):
        longest = np.maximum.accumulate(lengths[order[start:]])  # (rest,)
        fitting = np.searchsorted(longest * np.arange(1, len(longest) + 1), size, side="right")
        chosen = order[start : start + max(1, int(fitting))]  # (P,)
        yield _block([paths[number] for number in chosen], new[chosen], device)
        start += len(chosen)


def _new_nodes(paths: Sequence[Integers]) -> Integers:
    """Return the number of nodes of each path, (paths,), that no earlier path has. They are its last nodes."""
    owners = np.repeat(np.arange(len(paths)), [len(path) for path in paths])  # (positions,)
    _, first = np.unique(np.concatenate(paths), return_index=True)  # (nodes,)
    return np.bincount(owners[first], minlength=len(paths))


def _block(paths: Sequence[Integers], new: Integers, device: torch.device) -> Block:
    lengths = np.array([len(path) for path in paths])  # (P,)
    positions = np.arange(lengths.max())  # (T,)
    keys = np.zeros((len(paths), len(positions)), dtype=np.int64)  # (P, T)
    keys[positions < lengths[:, None]] = np.concatenate(paths)
    asking = lengths[:, None] - np.arange(new.max(), 0, -1)  # (P, M) positions, negative before a root
    computed = np.flatnonzero(asking >= (lengths - new)[:, None])  # (C,)
    asking = np.maximum(asking, 0)
    queries = np.take_along_axis(keys, asking, axis=1)  # (P, M)
    bias = np.where(positions <= asking[:, :, None], np.float32(0), np.float32(-np.inf))  # (P, M, T)
    return Block(
        keys=on_device(keys.ravel(), device),
        queries=on_device(queries.ravel(), device),
        bias=on_device(bias, device),
        computed=on_device(computed, device),
        nodes=on_device(queries.ravel()[computed], device),
    )
