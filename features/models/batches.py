"""Sentence pairs as tensors, in batches of similar length."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from features.models.device import on_device
from features.models.vocabulary import BEGIN, END, PADDING

EncodedPair = tuple[list[int], list[int]]
"""Numbers of the tokens of a source and a target sentence, without sentinels."""
CELLS = 2**22
"""Rows of attention that a batch may hold without learning, as numbers: pairs · source positions · target positions."""
ENCODED = 128
"""Target positions that a source position counts for at least: what the encoder holds of it."""


def pad(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """(B, S) numbers, each sentence between `<s>` and `</s>`, padded behind."""
    longest = max(len(sentence) for sentence in sentences)
    rows = [[BEGIN, *sentence, END] + [PADDING] * (longest - len(sentence)) for sentence in sentences]
    return on_device(rows, device)  # (B, S)


def bucketed(
    pairs: Sequence[tuple[Sequence[object], Sequence[object]]],
    batch: int,
    tokens: int = 0,
    rng: random.Random | None = None,
    cells: int = 0,
) -> list[list[int]]:
    """Return lists of pair numbers of similar lengths: `batch` pairs at most, or `tokens` target tokens if not 0.

    Tokens count `</s>` and the padding; so do `cells`, which limit pairs · source · target, if not 0. A pair that is
    larger by itself is a batch. With `rng`, pairs of equal length and the batches are in random order.
    """
    order = list(range(len(pairs)))
    if rng:
        rng.shuffle(order)
    order.sort(key=lambda number: (len(pairs[number][1]), len(pairs[number][0])))
    batches: list[list[int]] = []
    longest = 0
    for number in order:
        source, target = len(pairs[number][0]) + 2, len(pairs[number][1]) + 1
        held, longest = len(batches[-1]) if batches else 0, max(longest, source)
        full = (held + 1) * target > tokens if tokens else held == batch
        if full or not batches or 0 < cells < (held + 1) * longest * max(target, ENCODED):
            batches.append([])
            longest = source
        batches[-1].append(number)
    if rng:
        rng.shuffle(batches)
    return batches
