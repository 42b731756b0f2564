"""Self-attention along the paths of a prefix tree: each node attends to itself and to the nodes above it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.device import on_device

MAX_NEW_NODES = 256
"""Maximum number of nodes of a path whose attention is computed at once."""


class Block(NamedTuple):
    """P paths, and the last M nodes of each path, whose attention is computed.

    A node is on many paths, but only one of them computes its attention.
    """

    keys: Tensor  # (P·T,) node at each position of the paths, arbitrary after the end of a path
    queries: Tensor  # (P·M,) nodes that attend
    positions: Tensor  # (P, M) positions of these nodes on their paths
    computed: Tensor  # (C,) queries whose results are kept
    nodes: Tensor  # (C,) the nodes of these queries

    @property
    def bias(self) -> Tensor:
        """Bias (P, M, T): 0 where attention is allowed, minus infinity elsewhere."""
        positions = torch.arange(len(self.keys) // len(self.positions), device=self.keys.device)  # (T,)
        later = positions > self.positions.unsqueeze(-1)  # (P, M, T)
        return torch.zeros(later.shape, device=later.device).masked_fill_(later, float("-inf"))


def blocks_of(paths: Sequence[Integers], size: int, device: torch.device) -> Iterator[Block]:
    """Yield blocks of about `size` positions, which together compute each node once.

    Args:
        paths: the nodes of each path, from a root on.
        size: maximum P·T of a block. A path that is longer forms its own block.
        device: device of the tensors.
    """
    paths, new = _split_paths(paths, _new_nodes(paths))
    lengths = np.array([len(path) for path in paths])  # (paths,)
    # Paths with equally many new nodes, and of similar length, share a block.
    order = np.lexsort((lengths, new))  # (paths,)
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


def _split_paths(paths: Sequence[Integers], new: Integers) -> tuple[list[Integers], Integers]:
    """Return the parts of the paths, from their roots on, with at most `MAX_NEW_NODES` new nodes each."""
    parts, counts = [], []
    for path, count in zip(paths, new.tolist(), strict=True):
        for rest in range(0, count, MAX_NEW_NODES):  # nodes after the part
            parts.append(path[: len(path) - rest])
            counts.append(min(MAX_NEW_NODES, count - rest))
    return parts, np.array(counts)


def _block(paths: Sequence[Integers], new_nodes: Integers, device: torch.device) -> Block:
    lengths = np.array([len(path) for path in paths])  # (P,)
    positions = np.arange(lengths.max())  # (T,)
    keys = np.zeros((len(paths), len(positions)), dtype=np.int64)  # (P, T)
    keys[positions < lengths[:, None]] = np.concatenate(paths)
    query_positions = lengths[:, None] - np.arange(new_nodes.max(), 0, -1)  # (P, M) positions, negative before a root
    computed = np.flatnonzero(query_positions >= (lengths - new_nodes)[:, None])  # (C,)
    query_positions = np.maximum(query_positions, 0)
    queries = np.take_along_axis(keys, query_positions, axis=1)  # (P, M)
    return Block(
        keys=on_device(keys.ravel(), device),
        queries=on_device(queries.ravel(), device),
        positions=on_device(query_positions, device),
        computed=on_device(computed, device),
        nodes=on_device(queries.ravel()[computed], device),
    )
