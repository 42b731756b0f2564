"""Score the candidates of a source together: the decoder runs once for each different prefix.

A node is a prefix: the decoder's state after it, shared by all that follow. An edge is a next token: its
log-probability is added up along the path.

    <s> ── the ──┬── house ── </s>
                 └── old ── house ── …
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from features.arrays import AttentionRows, Integers
from features.feature import Sentence, Steps
from features.models.batches import pad
from features.models.folder import Model
from features.models.network.decoder import State
from features.models.network.softmax import BLOCK
from features.models.network.source import gather, join
from features.models.scoring.alone import encode_target, fertility, mean_log
from features.models.scoring.prefixes import Level, prefix_tree
from features.models.scoring.values import CandidateScores, SourceWords, Sums, of_tokens, select
from features.models.settings import Architecture
from features.models.vocabulary import UNKNOWN

MEMORY = {"cpu": 2**25, "cuda": 2**31}
"""Bytes that the nodes may take whose step is taken at once; on a CPU little more than its cache holds."""


def score_tree(
    models: Sequence[Model], sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False
) -> CandidateScores:
    """Score all candidates of some sentences with forward models.

    All prefixes of one length go together; the normalizer of the softmax serves all words that follow, and what a
    candidate's tokens add up to goes along the path. Several models score as the mean of their distributions; attention
    is that of the first. Equal to `score_alone` up to the rounding of float32.
    """
    first, sources = models[0], [each.source for each in sentences]
    owners = [number for number, each in enumerate(sentences) for _ in each.hypotheses]  # (N,) place of the sentence
    targets = [encode_target(first, hypothesis) for each in sentences for hypothesis in each.hypotheses]
    ended, ends, taken = [], [], 0
    rows = _Rows([len(sources[owner]) + 2 for owner in owners], first.device) if attention else None
    with torch.inference_mode():
        walks = [_Walk(model, sources) for model in models]
        sums = walks[0].nothing()
        for level in prefix_tree(owners, targets):
            tokens = _tokens(walks, level, first.device)
            nodes, edge_in = _on(first.device, level.nodes), _on(first.device, level.edge_in)
            sums = gather(gather(sums, edge_in), nodes).plus(tokens)  # edges before → N nodes → M edges
            ended.append(level.ended)
            ends.append(gather(sums, _on(first.device, level.ends)))  # candidates that end here
            taken += len(level.sources)
            if rows:
                rows.add(level, tokens.attention)
        order = _on(first.device, np.argsort(np.concatenate(ended)))
        expected = fertility(first, sources) if "fertility" in names else ()
        words = gather(SourceWords(walks[0].source.source_mask, expected), torch.tensor(owners, device=first.device))
        values = select(names, gather(join(ends), order), words)  # (N, names)
    steps = Steps(taken=taken, alone=sum(len(target) + 1 for target in targets))
    return CandidateScores(values.cpu().numpy(), rows.ended if rows else [], steps)


def _tokens(walks: Sequence["_Walk"], level: Level, device: torch.device) -> Sums:
    """Return the sums of the single tokens of a level's edges, as the mean of the models."""
    log_probs, rows = zip(*(walk.step(level) for walk in walks), strict=True)
    unknown = _on(device, level.next_words) == UNKNOWN
    return of_tokens(mean_log(log_probs), unknown, rows[0][_on(device, level.nodes)])  # (N, S) → (M, S)


class _Rows:
    """Rows of attention along the paths of the tree; `ended` has those of the candidates."""

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._sizes, self._device = sizes, device
        self._paths = torch.empty(0, device=device)  # (M, depth, S) of the edges of the level before
        self.ended: list[AttentionRows] = [np.empty((0, 0), dtype=np.float32)] * len(sizes)

    def add(self, level: Level, attention: Tensor) -> None:
        """Go on with the rows (M, S) of a level's edges, and keep those of the candidates that end there."""
        rows = attention.float().unsqueeze(1)  # (M, 1, S)
        if len(self._paths):
            before = self._paths[_on(self._device, level.edge_in[level.nodes])]  # (M, depth, S)
            rows = torch.cat([before, rows], dim=1)  # (M, depth + 1, S)
        self._paths = rows
        ends = rows[_on(self._device, level.ends)].cpu().numpy()
        for number, row in zip(level.ended.tolist(), ends, strict=True):
            self.ended[number] = row[:, : self._sizes[number]]  # (J+1, I+2)


class _Walk:
    """A model on its way through a prefix tree."""

    def __init__(self, model: Model, sources: Sequence[tuple[str, ...]]) -> None:
        self._network, self._device = model.network, model.device
        self.source = self._network.encode(pad([model.source.encode(source) for source in sources], model.device))
        self._state = self._network.decoder.start(self.source)
        held = _bytes_of_node(model.config.architecture, self.source.bias.shape[1])
        nodes = max(1, MEMORY[model.device.type] // held)
        self._nodes = nodes - nodes % BLOCK if nodes > BLOCK else nodes

    def nothing(self) -> Sums:
        """Return the sums of no tokens, a row a source."""
        zeros = torch.zeros_like(self.source.bias)  # (sources, S)
        return of_tokens(zeros[:, 0], zeros[:, 0] > 0, zeros)

    def step(self, level: Level) -> tuple[Tensor, Tensor]:
        """(M,) log-probability of each edge of the next level, and (N, S) attention of its nodes."""
        states, log_probs, rows = zip(*(self._step(part) for part in level.split(self._nodes)), strict=True)
        self._state = join(states)  # N rows
        return torch.cat(log_probs), torch.cat(rows)  # (M,), (N, S)

    def _step(self, level: Level) -> tuple[State, Tensor, Tensor]:
        decoder, device = self._network.decoder, self._device
        counts = np.bincount(level.sources, minlength=len(self.source.states))  # (sources,) nodes of each
        source = self.source.spread(_on(device, level.sources), tuple(counts.tolist()))
        step_input = decoder.step_input(self._network.embed(_on(device, level.words), source))  # (N, E)
        step, state = decoder.step(step_input, gather(self._state, _on(device, level.parents)), source)
        outputs = decoder.output(step, step_input.vectors)  # (N, H)
        log_probs = self._network.softmax.chosen(outputs, level.nodes, _on(device, level.next_words))
        return state, log_probs, step.row


def _on(device: torch.device, numbers: Integers) -> Tensor:
    return torch.from_numpy(numbers).to(device)


def _bytes_of_node(architecture: Architecture, positions: int) -> int:
    """Return about how much a node takes while its step is taken."""
    a = architecture
    attended = 3 * a.attention + (3 * a.annotation if a.granularity == "fine" else 0)
    remembered = 10 * a.memory if "memory" in a.terms else 0
    return 4 * (positions * (attended + remembered) + 20 * a.hidden * a.layers)
