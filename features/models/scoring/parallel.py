"""Prefixes of all lengths together, layer by layer, for models without recurrence."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.network.lexicon import ENTRIES
from features.models.network.paths import blocks_of
from features.models.network.transformer import Part, add_positions
from features.models.scoring.prefixes import Level
from features.models.scoring.walk import Walk, fitting

POSITIONS = {"cpu": 2**13, "cuda": 2**20}
"""Positions of paths whose keys and values are gathered together."""

MAX_PARTS = 8
"""Maximum number of parts whose keys and values are in memory. A part has the nodes that are processed together."""


class Nodes(NamedTuple):
    """Nodes of all depths with the edges that leave them. The nodes of one source are together."""

    sources: Integers  # (N,) source of each node, ascending
    words: Integers  # (N,) last token of each prefix
    depths: Integers  # (N,) length of each prefix
    leaving: Integers  # (M,) node that each edge leaves, ascending
    next_words: Integers  # (M,) token of each edge

    def part(self, nodes: slice) -> "Nodes":
        """Return some of the nodes, counted from the first of them."""
        edges = slice(*np.searchsorted(self.leaving, (nodes.start, nodes.stop)))
        of_edges = (self.leaving[edges] - nodes.start, self.next_words[edges])
        return Nodes(self.sources[nodes], self.words[nodes], self.depths[nodes], *of_edges)


def read_layer_by_layer(
    walk: Walk, levels: Sequence[Level], paths: Sequence[Integers]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the log-probability (M,) of each edge of a level, and the attention rows (N, S) of its nodes.

    Args:
        walk: the model before the first step.
        levels: the prefix tree.
        paths: nodes on the path of each candidate, numbered over all levels from the root on.
    """
    nodes, order, edges = _by_source(levels)
    node_at = np.argsort(order)  # (nodes,)
    paths_by_source = [node_at[path] for path in paths]
    roots = np.array([path[0] for path in paths_by_source])  # (candidates,)
    size = fitting(_bytes_of_node(walk), walk.device)
    of_edges = walk.source.bias.new_empty(len(edges))
    of_nodes = walk.source.bias.new_empty(len(order), walk.source.bias.shape[1])  # (nodes, S)
    node = edge = 0
    for block in _blocks(nodes.sources, MAX_PARTS * size):
        candidates = np.flatnonzero((block.start <= roots) & (roots < block.stop))
        paths_of_block = [paths_by_source[number] - block.start for number in candidates]
        for log_probs, rows in _read(walk, nodes.part(block), paths_of_block, size):
            of_edges.index_copy_(0, walk.on_device(edges[edge : edge + len(log_probs)]), log_probs)
            of_nodes.index_copy_(0, walk.on_device(order[node : node + len(rows)]), rows)
            node, edge = node + len(rows), edge + len(log_probs)
    each_edge = torch.split(of_edges, [len(level.nodes) for level in levels])
    yield from zip(each_edge, torch.split(of_nodes, [len(level.sources) for level in levels]), strict=True)


def _by_source(levels: Sequence[Level]) -> tuple[Nodes, Integers, Integers]:
    """Return nodes and edges by source, and their numbers over all levels, (N,) and (M,)."""
    sources = np.concatenate([each.sources for each in levels])  # (N,)
    words = np.concatenate([each.words for each in levels])  # (N,)
    next_words = np.concatenate([each.next_words for each in levels])  # (M,)
    starts = np.cumsum([0, *(len(level.sources) for level in levels)])
    depths = np.repeat(np.arange(len(levels)), np.diff(starts))  # (N,)
    order = np.argsort(sources, kind="stable")  # (N,)
    node_at = np.argsort(order)  # (N,)
    leaving = np.concatenate([level.nodes + start for level, start in zip(levels, starts, strict=False)])  # (M,)
    leaving = node_at[leaving]  # (M,)
    edges = np.argsort(leaving, kind="stable")  # (M,)
    nodes = Nodes(sources[order], words[order], depths[order], leaving[edges], next_words[edges])
    return nodes, order, edges


def _blocks(sources: Integers, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` nodes, or the nodes of one source, that do not divide the nodes of a source."""
    ends = [*(np.flatnonzero(np.diff(sources)) + 1), len(sources)]
    start = 0
    for end, after in zip(ends, [*ends[1:], None], strict=True):
        if after is None or after - start > size:
            yield slice(start, int(end))
            start = int(end)


def _read(walk: Walk, nodes: Nodes, paths: Sequence[Integers], size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield log-probabilities of edges (M,) and attention rows (n, S), for parts of `size` nodes of whole sources."""
    network, count = walk.network, len(nodes.sources)
    spans = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    parts = [Part(span, walk.sources_of(nodes.sources[span])) for span in spans]
    words = walk.on_device(nodes.words)
    vectors = torch.cat([network.embed(words[part.nodes], part.source) for part in parts])  # (N, E)
    depths = walk.on_device(nodes.depths, vectors.dtype).unsqueeze(1)  # (N, 1)
    blocks = list(blocks_of(paths, POSITIONS[walk.device.type], walk.device))
    outputs = network.decoder.tree(add_positions(vectors, depths), parts, blocks)
    for part, (output, row) in zip(parts, outputs, strict=True):
        nodes_of_part = nodes.part(part.nodes)
        lexical, next_words = network.lexical(part.source, row), walk.on_device(nodes_of_part.next_words)
        yield network.softmax.chosen(output, nodes_of_part.leaving, next_words, lexical), row  # (M,), (n, S)


def _bytes_of_node(walk: Walk) -> int:
    """Return approximately how many bytes a node takes in a layer."""
    a, positions = walk.architecture, walk.source.bias.shape[1]
    known = 3 * ENTRIES if a.lexicon != "none" else 0
    computed = positions * (3 * a.attention_heads + known) + 12 * a.hidden_size + 2 * a.feedforward_size
    return 4 * computed + walk.copied_bytes
