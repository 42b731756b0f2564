"""Sentence pairs as tensors, in batches of similar length."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from features.models.device import on_device
from features.models.vocabulary import BEGIN, END, PADDING

EncodedPair = tuple[list[int], list[int]]
"""Token ids of a source and a target sentence, without `<s>` and `</s>`."""
CELLS = 2**22
"""Maximum attention weights of a batch in scoring: pairs · source positions · target positions."""
ENCODED = 128
"""Minimum number of target positions in the size of a batch.

A source position needs memory in the encoder even if the target is short.
"""


def pad(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return ids (B, S): each sentence between `<s>` and `</s>`, then padding."""
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
    """Return batches of pairs of similar length, as lists of pair indices.

    Sizes count `</s>` and padding. A pair that exceeds a limit by itself forms its own batch.

    Args:
        pairs: source and target of each pair.
        batch: maximum number of pairs in a batch, if `tokens` is 0.
        tokens: maximum number of target tokens in a batch, or 0 for no limit.
        rng: if given, shuffles the batches, and the pairs of equal length.
        cells: maximum of pairs · source positions · target positions of a batch, or 0 for no limit.
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
