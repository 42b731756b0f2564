"""Score given translations: pairs of token lists in, log-probabilities of every token out."""

from collections.abc import Iterator, Sequence

import torch

from features.models.batches import pad
from features.models.folder import Model
from features.models.model import TokenScores

BATCH = 256
"""Candidates in a batch, at most."""
LOGITS = 2**26
"""Logits held at once, at most (256 MiB)."""

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""Tokens of source and translation, in the order of the corpus whatever the direction of the model."""


def score_pairs(model: Model, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], TokenScores]]:
    """Yield (numbers of pairs, their scores), a batch at a time, until each pair was scored once.

    Each source of a batch is encoded once. Shapes are those of `TokenScores`; row n belongs to pair numbers[n].
    """
    backward = model.config.direction == "backward"
    encoded = [
        (
            tuple(model.source.encode(right if backward else left)),
            tuple(model.target.encode(left if backward else right)),
        )
        for left, right in pairs
    ]
    order = sorted(range(len(pairs)), key=lambda number: len(encoded[number][1]))
    for numbers in _batches(order, [len(target) + 1 for _, target in encoded], len(model.target)):
        rows: dict[tuple[int, ...], int] = {}
        gather = [rows.setdefault(encoded[number][0], len(rows)) for number in numbers]
        target = pad([encoded[number][1] for number in numbers], model.device)
        with torch.inference_mode():
            source = model.network.encode(pad(list(rows), model.device))
            if len(rows) < len(numbers):
                source = source.gather(torch.tensor(gather, device=model.device))
            yield numbers, model.network.score(source, target)


def _batches(order: list[int], lengths: list[int], vocabulary: int) -> Iterator[list[int]]:
    """Cut numbers, which are in the order of their lengths, into batches within both limits."""
    batch: list[int] = []
    for number in order:
        if len(batch) == BATCH or (len(batch) + 1) * lengths[number] * vocabulary > LOGITS:
            if batch:
                yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
