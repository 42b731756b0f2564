"""Sentence pairs as tensors, in batches of similar length."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from features.models.vocabulary import BEGIN, END, PADDING

EncodedPair = tuple[list[int], list[int]]
"""Numbers of the tokens of a source and a target sentence, without sentinels."""


def pad(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """(B, S) numbers, each sentence between `<s>` and `</s>`, padded behind."""
    longest = max(len(sentence) for sentence in sentences)
    rows = [[BEGIN, *sentence, END] + [PADDING] * (longest - len(sentence)) for sentence in sentences]
    return torch.tensor(rows, device=device)  # (B, S)


def bucketed(
    pairs: Sequence[EncodedPair], batch: int, tokens: int = 0, rng: random.Random | None = None
) -> list[list[int]]:
    """Return lists of pair numbers of similar lengths: `batch` pairs at most, or `tokens` target tokens if not 0.

    Tokens count `</s>` and the padding; a pair that is longer by itself is a batch. With `rng`, pairs of equal length
    and the batches are in random order.
    """
    order = list(range(len(pairs)))
    if rng:
        rng.shuffle(order)
    order.sort(key=lambda number: (len(pairs[number][1]), len(pairs[number][0])))
    batches: list[list[int]] = []
    for number in order:
        held = len(batches[-1]) if batches else 0
        full = (held + 1) * (len(pairs[number][1]) + 1) > tokens if tokens else held == batch
        if full or not batches:
            batches.append([])
        batches[-1].append(number)
    if rng:
        rng.shuffle(batches)
    return batches
