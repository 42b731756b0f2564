"""Score given translations: pairs of token lists in, log-probabilities of every token out."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from features.models.batches import pad
from features.models.folder import Model
from features.models.model import TokenScores
from features.models.source import gather

BATCH = 256
"""Candidates in a batch, at most."""

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""Tokens of source and translation, in the order of the corpus whatever the direction of the model."""


def score_pairs(models: Sequence[Model], pairs: Sequence[Pair]) -> Iterator[tuple[list[int], TokenScores]]:
    """Yield (numbers of pairs, their scores), a batch at a time, until each pair was scored once.

    Several models, of one direction and target vocabulary, score as the mean of their distributions; see
    `combine`. Each source of a batch is encoded once. Shapes are those of `TokenScores`, its tokens in the order of
    the model; row n belongs to pair numbers[n].
    """
    first = models[0]
    backward = first.config.direction == "backward"
    turned = [(right, left) if backward else (left, right) for left, right in pairs]
    targets = [_target(first, target) for _, target in turned]
    order = sorted(range(len(pairs)), key=lambda number: len(targets[number]))
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        target = pad([targets[number] for number in numbers], first.device)
        sources = [turned[number][0] for number in numbers]
        yield numbers, combine([_score(model, sources, target) for model in models])


def combine(scores: Sequence[TokenScores]) -> TokenScores:
    """Average models word by word: log of the mean probability; rows of attention are those of the first model."""
    if len(scores) == 1:
        return scores[0]
    stacked = torch.stack([each.log_probs for each in scores])
    return scores[0]._replace(log_probs=stacked.logsumexp(dim=0) - math.log(len(scores)))


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
