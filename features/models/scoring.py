"""Score given translations: pairs of token lists in, log-probabilities of every token out."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from features.models.batches import pad
from features.models.folder import Model
from features.models.model import TokenScores
from features.models.prefixes import Level, Numbers, prefix_tree
from features.models.source import gather

Array = NDArray[np.float64]

BATCH = 256
"""Candidates in a batch, at most."""

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""Tokens of source and translation, in the order of the corpus whatever the direction of the model."""
Sentence = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Tokens of a source and of its candidates."""


def score_pairs(models: Sequence[Model], pairs: Sequence[Pair]) -> Iterator[tuple[list[int], TokenScores]]:
    """Yield (numbers of pairs, their scores), a batch at a time, until each pair was scored once.

    Several models, of one direction and target vocabulary, score as the mean of their distributions; rows of
    attention are those of the first. Each source of a batch is encoded once. Shapes are those of `TokenScores`, its
    tokens in the order of the model; row n belongs to pair numbers[n].
    """
    first = models[0]
    backward = first.config.direction == "backward"
    turned = [(right, left) if backward else (left, right) for left, right in pairs]
    targets = [_target(first, target) for _, target in turned]
    order = sorted(range(len(pairs)), key=lambda number: (len(targets[number]), len(turned[number][0])))
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        target = pad([targets[number] for number in numbers], first.device)
        sources = [turned[number][0] for number in numbers]
        scores = [_score(model, sources, target) for model in models]
        yield numbers, scores[0]._replace(log_probs=mean_log([each.log_probs for each in scores]))


def log_probabilities(models: Sequence[Model], sentences: Sequence[Sentence]) -> Array:
    """(candidates of all sentences,) natural log of p(candidate | source), `</s>` included, by forward models.

    The decoder runs once for each different prefix of a sentence's candidates, all prefixes of one length together;
    the normalizer of the softmax serves all words that follow. Several models score as the mean of their
    distributions. Equal to `score_pairs` up to the rounding of float32.
    """
    device = models[0].device
    owners = [number for number, (_, candidates) in enumerate(sentences) for _ in candidates]
    targets = [_target(models[0], candidate) for _, candidates in sentences for candidate in candidates]
    totals = np.empty(len(targets))
    reached = torch.zeros(len(sentences), dtype=torch.float64, device=device)
    with torch.inference_mode():
        walks = [_Walk(model, [source for source, _ in sentences]) for model in models]
        for level in prefix_tree(owners, targets):
            edges = mean_log([walk.step(level) for walk in walks])
            reached = reached[_on(device, level.edge_in)][_on(device, level.nodes)] + edges
            totals[level.ended] = reached[_on(device, level.ends)].cpu().numpy()
    return totals


class _Walk:
    """A model on its way through a prefix tree."""

    def __init__(self, model: Model, sources: Sequence[tuple[str, ...]]) -> None:
        self._network, self._device = model.network, model.device
        self._source = self._network.encode(pad([model.source.encode(source) for source in sources], model.device))
        self._state = self._network.decoder.start(self._source)

    def step(self, level: Level) -> Tensor:
        """(M,) log-probability of each edge of the next level."""
        decoder, device = self._network.decoder, self._device
        counts = np.bincount(level.sources, minlength=len(self._source.states))
        source = self._source.spread(_on(device, level.sources), tuple(counts.tolist()))
        words = decoder.words(self._network.embed(_on(device, level.words), source))
        seen, self._state = decoder.step(words, gather(self._state, _on(device, level.parents)), source)
        return self._network.softmax.chosen(
            decoder.output(seen, words.vectors), level.nodes, _on(device, level.next_words)
        )


def _on(device: torch.device, numbers: Numbers) -> Tensor:
    return torch.from_numpy(numbers).to(device)


def mean_log(log_probs: Sequence[Tensor]) -> Tensor:
    """Average models word by word: log of the mean of their probabilities."""
    return log_probs[0] if len(log_probs) == 1 else torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


def by_word(values: Tensor, spans: Sequence[int], right_to_left: bool) -> Tensor:
    """Sum the values (J,) of a target's pieces to (words + 1,), those of its words from left to right, then `</s>`."""
    words, last = values[: sum(spans)], values[sum(spans) : sum(spans) + 1]
    ordered = words.flip(0) if right_to_left else words
    sums = [part.sum() for part in torch.split(ordered, list(spans))] if spans else []
    return torch.cat([torch.stack(sums) if sums else words, last])


def _target(model: Model, tokens: Sequence[str]) -> list[int]:
    numbers = model.target.encode(tokens)
    return numbers[::-1] if model.config.right_to_left else numbers


def _score(model: Model, sources: Sequence[tuple[str, ...]], target: Tensor) -> TokenScores:
    """Score targets (B, J+1) with B sources, of which equals are encoded once."""
    rows: dict[tuple[str, ...], int] = {}
    chosen = [rows.setdefault(source, len(rows)) for source in sources]
    with torch.inference_mode():
        encoded = model.network.encode(pad([model.source.encode(source) for source in rows], model.device))
        if len(rows) < len(chosen):
            encoded = gather(encoded, torch.tensor(chosen, device=model.device))
        return model.network.score(encoded, target)
