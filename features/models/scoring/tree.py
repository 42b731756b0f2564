"""Score the candidates of a source together: the decoder runs once for each different prefix."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from features.models.batches import pad
from features.models.folder import Model
from features.models.network.decoder import State
from features.models.network.softmax import BLOCK
from features.models.network.source import gather, join
from features.models.scoring.alone import Rows, encode_target, fertility, mean_log
from features.models.scoring.prefixes import Level, Numbers, prefix_tree
from features.models.scoring.values import WORST, Sums, Words, of_tokens, select
from features.models.settings import Architecture
from features.models.vocabulary import UNKNOWN

MEMORY = {"cpu": 2**25, "cuda": 2**31}
"""Bytes that the nodes may take whose step is taken at once; on a CPU little more than its cache holds."""

Sentence = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Tokens of a source and of its candidates."""


def score_tree(
    models: Sequence[Model], sentences: Sequence[Sentence], names: Sequence[str], rows: bool = False
) -> tuple[Tensor, list[Rows], int, int]:
    """Score all candidates of some sentences with forward models.

    All prefixes of one length go together; the normalizer of the softmax serves all words that follow, and what a
    candidate's tokens add up to goes along the path. Several models score as the mean of their distributions; attention
    is that of the first. Equal to `score_alone` up to the rounding of float32.

    Returns:
        (candidates, names) float64 values; with `rows` the attention of each candidate; the steps that were taken, and
        those of all candidates one by one.
    """
    device, owners = models[0].device, _owners(sentences)
    ended, found, steps = [], [], 0
    seen = _Seen([len(sentences[owner][0]) + 2 for owner in owners], device) if rows else None
    with torch.inference_mode():
        walks = [_Walk(model, [source for source, _ in sentences]) for model in models]
        sums = walks[0].nothing()
        for level, tokens in _levels(walks, models[0], sentences):
            nodes = _on(device, level.nodes)
            sums = gather(gather(sums, _on(device, level.edge_in)), nodes).plus(tokens)
            ended.append(level.ended)
            found.append(gather(sums, _on(device, level.ends)))
            steps += len(level.sources)
            if seen:
                seen.add(level, tokens.attention)
        order = np.argsort(np.concatenate(ended))
        expected = fertility(models[0], [source for source, _ in sentences]) if "fertility" in names else ()
        words = gather(Words(walks[0].source.source_mask, expected), torch.tensor(owners, device=device))
        values = select(names, gather(join(found), _on(device, order)), words)
    alone = sum(len(target) + 1 for target in _targets(models[0], sentences))
    return values, seen.rows if seen else [], steps, alone


class _Seen:
    """Rows of attention along the paths of the tree."""

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._sizes, self._device = sizes, device
        self._paths = torch.empty(0, device=device)
        self.rows: list[Rows] = [np.empty((0, 0), dtype=np.float32)] * len(sizes)

    def add(self, level: Level, attention: Tensor) -> None:
        """Go on with the rows (M, S) of a level's edges, and keep those of the candidates that end there."""
        rows = attention.float().unsqueeze(1)
        if len(self._paths):
            before = self._paths[_on(self._device, level.edge_in[level.nodes])]
            rows = torch.cat([before, rows], dim=1)
        self._paths = rows
        ends = rows[_on(self._device, level.ends)].cpu().numpy()
        for number, row in zip(level.ended.tolist(), ends, strict=True):
            self.rows[number] = row[:, : self._sizes[number]]


def _levels(walks: Sequence["_Walk"], first: Model, sentences: Sequence[Sentence]) -> Iterator[tuple[Level, Sums]]:
    """Yield the levels of the tree, and of each of their edges its token."""
    for level in prefix_tree(_owners(sentences), _targets(first, sentences)):
        log_probs, rows = zip(*(walk.step(level) for walk in walks), strict=True)
        nodes, next_words = _on(first.device, level.nodes), _on(first.device, level.next_words)
        yield level, of_tokens(mean_log(log_probs), next_words == UNKNOWN, rows[0][nodes])


def _owners(sentences: Sequence[Sentence]) -> list[int]:
    """(candidates,) the place of each one's sentence."""
    return [number for number, (_, candidates) in enumerate(sentences) for _ in candidates]


def _targets(model: Model, sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the numbers of each candidate's words."""
    return [encode_target(model, candidate) for _, candidates in sentences for candidate in candidates]


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
        zeros = torch.zeros(self.source.bias.shape, dtype=torch.float64, device=self._device)
        return Sums(*(zeros[:, 0],) * 4, attention=zeros, worst=zeros.new_zeros(len(zeros), WORST))

    def step(self, level: Level) -> tuple[Tensor, Tensor]:
        """(M,) log-probability of each edge of the next level, and (N, S) attention of its nodes."""
        states, log_probs, rows = zip(*(self._step(part) for part in level.split(self._nodes)), strict=True)
        self._state = join(states)
        return torch.cat(log_probs), torch.cat(rows)

    def _step(self, level: Level) -> tuple[State, Tensor, Tensor]:
        decoder, device = self._network.decoder, self._device
        counts = np.bincount(level.sources, minlength=len(self.source.states))
        source = self.source.spread(_on(device, level.sources), tuple(counts.tolist()))
        words = decoder.step_input(self._network.embed(_on(device, level.words), source))
        seen, state = decoder.step(words, gather(self._state, _on(device, level.parents)), source)
        outputs = decoder.output(seen, words.vectors)
        log_probs = self._network.softmax.chosen(outputs, level.nodes, _on(device, level.next_words))
        return state, log_probs, seen.row


def _on(device: torch.device, numbers: Numbers) -> Tensor:
    return torch.from_numpy(numbers).to(device)


def _bytes_of_node(architecture: Architecture, positions: int) -> int:
    """Return about how much a node takes while its step is taken."""
    a = architecture
    attended = 3 * a.attention + (3 * a.annotation if a.granularity == "fine" else 0)
    remembered = 10 * a.memory if "memory" in a.terms else 0
    return 4 * (positions * (attended + remembered) + 20 * a.hidden * a.layers)
