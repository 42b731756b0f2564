"""Score given translations: pairs of token lists in, log-probabilities of every token out."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from features.models.batches import pad
from features.models.folder import Model
from features.models.network.model import TokenScores
from features.models.network.source import gather
from features.models.scoring.values import Words, of_tokens, select, total

BATCH = 256
"""Candidates in a batch, at most."""

Rows = NDArray[np.float32]

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""Tokens of source and translation, in the order of the corpus whatever the direction of the model."""


def score_pairs(models: Sequence[Model], pairs: Sequence[Pair]) -> Iterator[tuple[list[int], TokenScores]]:
    """Yield (numbers of pairs, their scores), a batch at a time, until each pair was scored once.

    Several models, of one direction and target vocabulary, score as the mean of their distributions; rows of
    attention are those of the first. Each source of a batch is encoded once. Shapes are those of `TokenScores`, its
    tokens in the order of the model; row n belongs to pair numbers[n].
    """
    first = models[0]
    backward = first.config.direction == "backward"
    turned = [(right, left) if backward else (left, right) for left, right in pairs]
    targets = [encode_target(first, target) for _, target in turned]
    order = sorted(range(len(pairs)), key=lambda number: (len(targets[number]), len(turned[number][0])))
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        target = pad([targets[number] for number in numbers], first.device)
        sources = [turned[number][0] for number in numbers]
        scores = [_score(model, sources, target) for model in models]
        yield numbers, scores[0]._replace(log_probs=mean_log([each.log_probs for each in scores]))


def score_alone(
    models: Sequence[Model], pairs: Sequence[Pair], names: Sequence[str], rows: bool = False
) -> tuple[Tensor, list[Rows]]:
    """Score each pair from its first word; equal pairs are scored once.

    Returns:
        (pairs, names) float64 values; and with `rows` of each pair its attention, (J+1, I+2): target words and `</s>`
        on `<s>`, source words and `</s>`. Of a backward model target and source are those of the network.
    """
    distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    first, wanted = models[0], "fertility" in names
    values = torch.empty(len(distinct), len(names), dtype=torch.float64, device=models[0].device)
    found: list[Rows] = [np.empty((0, 0), dtype=np.float32)] * len(distinct)
    turned = [pair[::-1] if first.config.direction == "backward" else pair for pair in distinct]
    for numbers, scores in score_pairs(models, list(distinct)):
        sums = total(of_tokens(scores.log_probs, scores.unknown, scores.attention))
        sources = [turned[number][0] for number in numbers]
        values[numbers] = select(names, sums, Words(scores.source_mask, fertility(first, sources) if wanted else ()))
        for number, row in zip(numbers, scores.attention.float().cpu().numpy(), strict=True) if rows else ():
            source, target = turned[number]
            found[number] = row[: len(target) + 1, : len(source) + 2]
    places = [distinct[pair] for pair in pairs]
    return values[places], [found[place] for place in places] if rows else []


def fertility(model: Model, sources: Sequence[tuple[str, ...]]) -> tuple[Tensor, Tensor]:
    """(B, S) mean and variance of the attention that source words should get."""
    with torch.inference_mode():
        return model.network.fertility(pad([model.source.encode(source) for source in sources], model.device))


def mean_log(log_probs: Sequence[Tensor]) -> Tensor:
    """Average models word by word: log of the mean of their probabilities."""
    return log_probs[0] if len(log_probs) == 1 else torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


def encode_target(model: Model, tokens: Sequence[str]) -> list[int]:
    """Return the numbers of a target in the order in which the model says them."""
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
