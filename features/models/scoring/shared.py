"""Encoded sources of many candidates, for backward models: common prefixes and suffixes are encoded only once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.batches import pad
from features.models.device import on_device
from features.models.folder import Model
from features.models.network.source import Source, gather

BYTES = 2**27
"""Maximum memory of the states of all positions, if nothing is shared."""


class Tree(NamedTuple):
    """The prefixes of some sequences.

    Attributes:
        levels: for each length, the index of each prefix without its last word among the prefixes of the length before,
            and its last word, (nodes,) each.
        nodes: (B, S) the prefix that ends at each position, counted over all levels. Arbitrary on padding.
    """

    levels: list[tuple[Integers, Integers]]
    nodes: Integers


class Encodings:
    """Encoded sources, in batches."""

    def __init__(self, model: Model, sources: Sequence[Sequence[str]]) -> None:
        self._model, self._sources = model, [model.source.encode(source) for source in sources]

    def batch(self, numbers: Sequence[int]) -> Source:
        """Return the encoded sources of these numbers, (B,). Equal ones are encoded once."""
        model, rows = self._model, dict[tuple[int, ...], int]()
        chosen = [rows.setdefault(tuple(self._sources[number]), len(rows)) for number in numbers]
        encoded = model.network.encode(pad(list(rows), model.device))
        return encoded if len(rows) == len(chosen) else gather(encoded, on_device(chosen, model.device))  # B rows


class SharedEncodings(Encodings):
    """Encoded sources whose common prefixes and suffixes are encoded once, by an encoder with `shares_prefixes`."""

    def __init__(self, model: Model, sources: Sequence[Sequence[str]]) -> None:
        super().__init__(model, sources)
        self._ids = pad(self._sources, model.device)  # (N, S)
        ids, lengths = self._ids.numpy(), np.array([len(each) + 2 for each in self._sources])  # (N, S), (N,)
        positions = np.arange(ids.shape[1])  # (S,)
        reversed_positions = np.maximum(lengths[:, None] - 1 - positions, 0)  # (N, S) position of a reversed sequence
        ahead, back = prefixes(ids, lengths), prefixes(np.take_along_axis(ids, reversed_positions, axis=1), lengths)
        with torch.inference_mode():
            states = [_states(model, ahead, backwards=False), _states(model, back, backwards=True)]
            # The last state is that of padding.
            self._states = torch.cat([*states, states[0].new_zeros(1, states[0].shape[1])])  # (nodes + 1, H)
        back_nodes = len(states[0]) + np.take_along_axis(back.nodes, reversed_positions, axis=1)  # (N, S)
        rows = np.stack([ahead.nodes, back_nodes], axis=2)  # (N, S, 2)
        rows[positions >= lengths[:, None]] = len(self._states) - 1
        self._rows, self._lengths = rows, lengths

    def batch(self, numbers: Sequence[int]) -> Source:
        """Return the encoded sources of these numbers, (B,)."""
        chosen = np.array(numbers)
        longest = int(self._lengths[chosen].max())
        rows = on_device(self._rows[chosen, :longest].ravel(), self._states.device)  # (B·S·2,)
        states = self._states.index_select(0, rows).view(len(numbers), longest, -1)  # (B, S, 2H)
        ids = self._ids[on_device(chosen, self._ids.device), :longest]  # (B, S)
        last = states[:, 0, states.shape[2] // 2 :]  # (B, H)
        return self._model.network.annotated(ids, states, ((last,),), ())


def prefixes(ids: Integers, lengths: Integers) -> Tree:
    """Return the prefixes of sequences (B, S) of these lengths (B,)."""
    stride, nodes = int(ids.max()) + 1, np.zeros(ids.shape, dtype=np.int64)  # (B, S)
    before, count, levels = np.zeros(len(ids), dtype=np.int64), 0, []  # (B,) prefix of the length before
    for position in range(ids.shape[1]):
        continuing = np.flatnonzero(lengths > position)  # (n,)
        extended = before[continuing] * stride + ids[continuing, position]  # (n,) prefix and word as one integer
        found, node = np.unique(extended, return_inverse=True)  # (nodes,), (n,)
        levels.append(np.divmod(found, stride))
        before[continuing], nodes[continuing, position] = node, count + node
        count += len(found)
    return Tree(levels, nodes)


def _states(model: Model, tree: Tree, backwards: bool) -> Tensor:
    words = np.unique(np.concatenate([words for _, words in tree.levels]))  # (W,)
    levels = [
        (on_device(parents, model.device), on_device(np.searchsorted(words, each), model.device))
        for parents, each in tree.levels
    ]
    vectors = model.network.source_embedding(on_device(words, model.device))  # (W, E)
    states: Tensor = model.network.encoder.encode_tree(vectors, levels, backwards)
    return states  # (nodes, H)


def encodings_of(model: Model, sources: Sequence[Sequence[str]], shared: bool) -> Encodings:
    """Return the encoded sources, with `shared` as `SharedEncodings` if the encoder allows it."""
    network = model.network
    # On a GPU, torch's fused kernel over all positions is faster than a step per position.
    shares = shared and model.device.type != "cuda" and network.context is None and network.encoder.shares_prefixes
    return (SharedEncodings if shares else Encodings)(model, sources)


def spans(models: Sequence[Model], sources: Sequence[Sequence[str]]) -> Iterator[slice]:
    """Yield slices of the sources whose states have at most `BYTES` bytes, or of one source."""
    max_positions = BYTES // (4 * sum(model.network.annotation for model in models))
    start = count = 0
    for number, source in enumerate(sources):
        if count and count + len(source) + 2 > max_positions:
            yield slice(start, number)
            start, count = number, 0
        count += len(source) + 2
    yield slice(start, len(sources))
