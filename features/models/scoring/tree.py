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

from features.arrays import Integers
from features.feature import Sentence, Steps
from features.models.batches import pad
from features.models.folder import Model
from features.models.network.decoder import State
from features.models.network.lexicon import ENTRIES
from features.models.network.softmax import BLOCK
from features.models.network.source import gather, join, put
from features.models.scoring.alone import encode_target, fertility, mean_log
from features.models.scoring.prefixes import Level, paths_of, prefix_tree
from features.models.scoring.values import CandidateScores, SourceWords, Sums, of_tokens, select
from features.models.settings import Architecture
from features.models.vocabulary import UNKNOWN
from features.progress import tell

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
    levels = list(prefix_tree(owners, targets))
    steps = Steps(taken=sum(len(level.sources) for level in levels), alone=sum(len(target) + 1 for target in targets))
    with torch.inference_mode():
        walks = [_Walk(model, sources) for model in models]
        source, owner = walks[0].source, torch.tensor(owners, device=first.device)  # (N,)
        sums, done = walks[0].nothing(), 0
        ended = gather(sums, owner)  # N rows
        rows = np.empty((steps.taken if attention else 0, source.bias.shape[1]), dtype=np.float32)
        for level in levels:
            tokens, row = _tokens(walks, level, first.device)
            nodes, edge_in = _on(first.device, level.nodes), _on(first.device, level.edge_in)
            sums = gather(gather(sums, edge_in), nodes).plus(tokens)  # edges before → N nodes → M edges
            put(ended, _on(first.device, level.ended), gather(sums, _on(first.device, level.ends)))
            if attention:
                rows[done : done + len(row)] = row.float().cpu().numpy()
            done += len(row)
            tell(f"step {done:,} of {steps.taken:,}")
        expected = fertility(first, sources) if "fertility" in names else ()
        values = select(names, ended, gather(SourceWords(source.source_mask, expected), owner))  # (N, names)
    paths = paths_of(levels, len(owners)) if attention else []
    attended = [rows[path, : len(sources[place]) + 2] for place, path in zip(owners, paths, strict=False)]  # (J+1, I+2)
    return CandidateScores(values.cpu().numpy(), attended, steps)


def _tokens(walks: Sequence["_Walk"], level: Level, device: torch.device) -> tuple[Sums, Tensor]:
    """Return the sums of the single tokens of a level's edges, as the mean of the models, and (N, S) attention."""
    log_probs, rows = zip(*(walk.step(level) for walk in walks), strict=True)
    unknown = _on(device, level.next_words) == UNKNOWN
    return of_tokens(mean_log(log_probs), unknown, rows[0][_on(device, level.nodes)]), rows[0]  # (N, S) → (M, S)


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
        lexical = self._network.lexical(source, step.row)
        log_probs = self._network.softmax.chosen(outputs, level.nodes, _on(device, level.next_words), lexical)
        return state, log_probs, step.row


def _on(device: torch.device, numbers: Integers) -> Tensor:
    return torch.from_numpy(numbers).to(device)


def _bytes_of_node(architecture: Architecture, positions: int) -> int:
    """Return about how much a node takes while its step is taken."""
    a = architecture
    known = 3 * ENTRIES if a.lexicon != "none" else 0
    if a.wiring == "transformer":
        earlier = positions * a.hidden  # keys and values of the words before, half as many as source positions
        return 4 * ((1 + a.layers) * earlier + 12 * a.hidden + 2 * a.feedforward + positions * known)
    attended = 3 * a.attention + (3 * a.annotation if a.granularity == "fine" else 0)
    remembered = 10 * a.memory if "memory" in a.terms else 0
    return 4 * (positions * (attended + remembered + known) + 20 * a.hidden * a.layers)
