"""Sentence pairs as tensors, in batches of similar length."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from features.models.vocabulary import BEGIN, END, PADDING

Pair = tuple[list[int], list[int]]
"""Word numbers of a source and a target sentence, without sentinels."""


def pad(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """(B, longest + 2) word numbers, each sentence between `<s>` and `</s>`, padded behind."""
    longest = max(len(sentence) for sentence in sentences)
    rows = [[BEGIN, *sentence, END] + [PADDING] * (longest - len(sentence)) for sentence in sentences]
    return torch.tensor(rows, device=device)


def bucketed(pairs: Sequence[Pair], batch: int, rng: random.Random | None = None) -> list[list[int]]:
    """Return lists of pair numbers, `batch` long at most, of similar lengths.

    With `rng`, pairs of equal length and the batches are in random order.
    """
    order = list(range(len(pairs)))
    if rng:
        rng.shuffle(order)
    order.sort(key=lambda number: (len(pairs[number][1]), len(pairs[number][0])))
    batches = [order[start : start + batch] for start in range(0, len(order), batch)]
    if rng:
        rng.shuffle(batches)
    return batches
