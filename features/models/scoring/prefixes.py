"""The tree of the prefixes of candidates, level by level.

A node is a prefix. An edge is a next token.

    <s> ── the ──┬── house ── </s>
                 └── old ── house ── …
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from features.arrays import Integers
from features.models.vocabulary import BEGIN, END


@dataclass(frozen=True)
class Level:
    """Nodes of one depth, and the edges that leave them."""

    sources: Integers  # (N,) source of each node, ascending
    words: Integers  # (N,) last token of each prefix, `<s>` at the root
    edge_in: Integers  # (N,) edge of the previous level that leads to each node, at the root the source
    parents: Integers  # (N,) node of the previous level that `edge_in` leaves, at the root the source
    nodes: Integers  # (M,) node that each edge leaves, ascending
    next_words: Integers  # (M,) token of each edge
    ended: Integers  # (E,) candidates that end in this level
    ends: Integers  # (E,) the last edge of each of these candidates

    def split(self, size: int) -> "Iterator[Level]":
        """Yield parts of `size` nodes with their edges. The field `nodes` counts from the first node of the part.

        `edge_in`, `ended` and `ends` stay those of the whole level.
        """
        for start in range(0, len(self.sources), size):
            nodes = slice(start, start + size)
            edges = slice(*np.searchsorted(self.nodes, (start, start + size)))
            yield replace(
                self,
                sources=self.sources[nodes],
                words=self.words[nodes],
                parents=self.parents[nodes],
                nodes=self.nodes[edges] - start,
                next_words=self.next_words[edges],
            )


def prefix_tree(sources: Sequence[int], targets: Sequence[Sequence[int]]) -> Iterator[Level]:
    """Yield the levels of the candidates' prefix tree, from the root on.

    Args:
        sources: index of each candidate's source. Each of 0, 1, 2, … must occur.
        targets: tokens of each candidate, without `</s>`.
    """
    longest = max(len(target) for target in targets)
    rows = [[*target, END] + [END] * (longest - len(target)) for target in targets]
    tokens = np.array(rows)  # (candidates, longest + 1)
    lengths = np.array([len(target) for target in targets])  # (candidates,)
    active, nodes_of = np.arange(len(targets)), np.array(sources)  # (active,) unended candidates, (active,) their nodes
    of_source = np.arange(nodes_of.max() + 1)  # (N,)
    words, edge_in, parents = np.full_like(of_source, BEGIN), of_source, of_source
    stride = int(tokens.max()) + 1
    for depth in range(longest + 1):
        pairs = nodes_of * stride + tokens[active, depth]  # (active,) node and next token as one integer
        edges, edge_of = np.unique(pairs, return_inverse=True)  # (M,), (active,)
        nodes, next_words = np.divmod(edges, stride)  # (M,) each
        ends = lengths[active] == depth  # (active,)
        yield Level(
            sources=of_source,
            words=words,
            edge_in=edge_in,
            parents=parents,
            nodes=nodes,
            next_words=next_words,
            ended=active[ends],
            ends=edge_of[ends],
        )
        edge_in = np.flatnonzero(next_words != END)  # (N,) of the next level
        parents, words = nodes[edge_in], next_words[edge_in]
        of_source = of_source[parents]
        nodes_of, active = np.searchsorted(edge_in, edge_of[~ends]), active[~ends]


def paths_of(levels: Sequence[Level], candidates: int) -> list[Integers]:
    """Return the nodes (J+1,) on the path of each candidate of J tokens, numbered over all levels from the root on."""
    starts = np.cumsum([0, *(len(level.sources) for level in levels)])  # (levels + 1,)
    paths = np.empty((len(levels), candidates), dtype=np.int64)  # (levels, candidates)
    at, lengths = np.zeros(candidates, dtype=np.int64), np.empty(candidates, dtype=np.int64)  # (candidates,) both
    for depth, level in reversed(list(enumerate(levels))):
        at[level.ended] = level.nodes[level.ends]  # arbitrary for candidates that ended earlier, cut off below
        lengths[level.ended] = depth + 1
        paths[depth] = starts[depth] + at
        at = level.parents[at]  # (candidates,)
    return [path[:length] for path, length in zip(paths.T, lengths, strict=True)]
