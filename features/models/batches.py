"""Sentence pairs as tensors, in batches of similar length."""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.device import on_device
from features.models.vocabulary import BEGIN, END, PADDING

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
    lengths: Integers,
    batch: int,
    tokens: int = 0,
    rng: random.Random | None = None,
    cells: int = 0,
) -> list[list[int]]:
    """Return batches of pairs of similar length, as lists of pair indices.

    Sizes count `</s>` and padding. A pair that exceeds a limit by itself forms its own batch.

    Args:
        lengths: (N, 2) number of tokens of source and target of each pair, without `<s>` and `</s>`.
        batch: maximum number of pairs in a batch, if `tokens` is 0.
        tokens: maximum number of target tokens in a batch, or 0 for no limit.
        rng: if given, shuffles the batches, and the pairs of equal length.
        cells: maximum of pairs · source positions · target positions of a batch, or 0 for no limit.
    """
    numbers = list(range(len(lengths)))
    if rng:
        rng.shuffle(numbers)
    order = np.array(numbers, dtype=np.int64)  # (N,)
    order = order[np.lexsort(lengths[order].T)]  # (N,) by target length, then source length, ties as shuffled
    batches: list[list[int]] = []
    longest = 0
    for number, (words, target_words) in zip(order.tolist(), lengths[order].tolist(), strict=True):
        source, target = words + 2, target_words + 1
        last_size, longest = len(batches[-1]) if batches else 0, max(longest, source)
        is_full = (last_size + 1) * target > tokens if tokens else last_size == batch
        if is_full or not batches or 0 < cells < (last_size + 1) * longest * max(target, ENCODED):
            batches.append([])
            longest = source
        batches[-1].append(number)
    if rng:
        rng.shuffle(batches)
    return batches
