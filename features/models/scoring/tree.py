"""Score the candidates of a source together: the decoder runs once for each different prefix.

A node is a prefix, with the decoder state that all its continuations share. An edge is a next token. Log-probabilities
are added up along the path.

    <s> ── the ──┬── house ── </s>
                 └── old ── house ── …
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.feature import Reading, Sentence, Steps
from features.models.device import on_device
from features.models.folder import Model
from features.models.network.source import gather, put
from features.models.scoring.alone import encode_target, fertility, mean_log
from features.models.scoring.values import SourceWords, Sums, of_tokens, select
from features.models.scoring.walk import Walk
from features.models.vocabulary import BEGIN, END, UNKNOWN
from features.progress import show_status


@dataclass(frozen=True)
class Level:
    """Nodes of one depth, and the edges that leave them."""

    sources: Integers  # (N,) source of each node, ascending
    words: Integers  # (N,) last token of each prefix, `<s>` at the root
    edge_in: Integers  # (N,) edge of the previous level that leads to each node, at the root the source
    parents: Integers  # (N,) node of the previous level that this edge leaves, at the root the source
    nodes: Integers  # (M,) node that each edge leaves, ascending
    next_words: Integers  # (M,) token of each edge
    ended: Integers  # candidates that end in this level
    ends: Integers  # the last edge of each of these candidates

    def split(self, size: int) -> "Iterator[Level]":
        """Yield parts of `size` nodes with their edges. The field `nodes` counts from the first node of the part."""
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
    lengths = np.array([len(target) for target in targets])
    living, nodes_of = np.arange(len(targets)), np.array(sources)  # candidates that have not ended, and their nodes
    of_source = np.arange(nodes_of.max() + 1)  # (N,)
    words, edge_in, parents = np.full_like(of_source, BEGIN), of_source, of_source
    stride = int(tokens.max()) + 1
    for depth in range(longest + 1):
        pairs = nodes_of * stride + tokens[living, depth]  # (living,) node and next token as one integer
        edges, edge_of = np.unique(pairs, return_inverse=True)  # (M,), (living,)
        nodes, next_words = np.divmod(edges, stride)  # (M,) each
        ends = lengths[living] == depth
        yield Level(
            sources=of_source,
            words=words,
            edge_in=edge_in,
            parents=parents,
            nodes=nodes,
            next_words=next_words,
            ended=living[ends],
            ends=edge_of[ends],
        )
        edge_in = np.flatnonzero(next_words != END)  # (N,) of the next level
        parents, words = nodes[edge_in], next_words[edge_in]
        of_source = of_source[parents]
        nodes_of, living = np.searchsorted(edge_in, edge_of[~ends]), living[~ends]


def paths_of(levels: Sequence[Level], candidates: int) -> list[Integers]:
    """Return the nodes on the path of each candidate, J+1 for J tokens, numbered over all levels from the root on."""
    starts = np.cumsum([0, *(len(level.sources) for level in levels)])
    paths, at = np.empty((len(levels), candidates), dtype=np.int64), np.zeros(candidates, dtype=np.int64)
    lengths = np.empty(candidates, dtype=np.int64)
    for depth, level in reversed(list(enumerate(levels))):
        at[level.ended] = level.nodes[level.ends]  # arbitrary for candidates that ended earlier, cut off below
        lengths[level.ended] = depth + 1
        paths[depth] = starts[depth] + at
        at = level.parents[at]  # (candidates,)
    return [path[:length] for path, length in zip(paths.T, lengths, strict=True)]


def score_tree(
    models: Sequence[Model], sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False
) -> Reading:
    """Score all candidates of some sentences with forward models.

    All prefixes of one length are processed together. The softmax is normalized once for all continuations of a prefix,
    and the values of tokens are added up along the path. Several models score with the mean of their distributions, and
    attention is that of the first model. Results equal those of `score_alone` up to the rounding of float32.
    """
    first, sources = models[0], [each.source for each in sentences]
    owners = [number for number, each in enumerate(sentences) for _ in each.hypotheses]  # (N,) index of the sentence
    targets = [encode_target(first, hypothesis) for each in sentences for hypothesis in each.hypotheses]
    levels = list(prefix_tree(owners, targets))
    steps = Steps(taken=sum(len(level.sources) for level in levels), alone=sum(len(target) + 1 for target in targets))
    with torch.inference_mode():
        walks = [Walk(model, sources) for model in models]
        walk, owner = walks[0], on_device(owners, first.device)  # (N,)
        source, sums, done = walk.source, _nothing(walk), 0
        ended = gather(sums, owner)  # N rows
        rows = np.empty((steps.taken if attention else 0, source.bias.shape[1]), dtype=np.float32)
        for level in levels:
            tokens, row = _tokens(walks, level)
            nodes, edge_in = walk.on_device(level.nodes), walk.on_device(level.edge_in)
            sums = gather(gather(sums, edge_in), nodes).plus(tokens)  # edges before → N nodes → M edges
            put(ended, walk.on_device(level.ended), gather(sums, walk.on_device(level.ends)))
            if attention:
                rows[done : done + len(row)] = row.float().cpu().numpy()
            done += len(row)
            show_status(f"step {done:,} of {steps.taken:,}")
        expected = fertility(first, sources) if "fertility" in names else ()
        values = select(names, ended, gather(SourceWords(source.source_mask, expected), owner))  # (N, names)
    paths = paths_of(levels, len(owners)) if attention else []
    attended = [rows[path, : len(sources[place]) + 2] for place, path in zip(owners, paths, strict=False)]  # (J+1, I+2)
    return Reading(dict(zip(names, values.cpu().numpy().T, strict=True)), attended, steps)


def _tokens(walks: Sequence[Walk], level: Level) -> tuple[Sums, Tensor]:
    """Return the values of the single token on each edge, with the models averaged, and attention rows (N, S)."""
    log_probs, rows = zip(*(_step(walk, level) for walk in walks), strict=True)
    unknown = walks[0].on_device(level.next_words) == UNKNOWN
    return of_tokens(mean_log(log_probs), unknown, rows[0][walks[0].on_device(level.nodes)]), rows[0]  # (N, S) → (M, S)


def _step(walk: Walk, level: Level) -> tuple[Tensor, Tensor]:
    """Return the log-probability (M,) of each edge of a level, and the attention rows (N, S) of its nodes."""
    states, log_probs, rows = [], [], []
    for part in level.split(walk.at_once):
        step = walk.step(part.sources, part.words, part.parents)
        next_words = walk.on_device(part.next_words)
        log_probs.append(walk.network.softmax.chosen(step.outputs, part.nodes, next_words, step.lexical))
        states.append(step.state)
        rows.append(step.row)
    walk.go_on(states)  # N rows
    return torch.cat(log_probs), torch.cat(rows)  # (M,), (N, S)


def _nothing(walk: Walk) -> Sums:
    """Return sums over no tokens, one row per source."""
    zeros = torch.zeros_like(walk.source.bias)  # (sources, S)
    return of_tokens(zeros[:, 0], zeros[:, 0] > 0, zeros)
