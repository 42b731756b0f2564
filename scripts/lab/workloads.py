"""Naive scoring and n-best lists, for several benchmarks."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from features.feature import Sentence
from features.models.batches import pad
from features.models.folder import Model
from features.models.vocabulary import PADDING
from moses_io.files.text import read_lines, tokens
from moses_io.nbest import read_nbest


def read_sentences(
    data: Path, count: int = 0, candidates: int = 0, part: str = "test", language: str = "de"
) -> list[Sentence]:
    """Return the first `count` sentences of a list with their first `candidates` candidates (0: all)."""
    sources = read_lines(str(data / f"{part}.{language}"))
    return [
        Sentence(
            each.sentence,
            tuple(tokens(sources[each.sentence])),
            tuple(tuple(tokens(hypothesis.text)) for hypothesis in each.hypotheses[: candidates or None]),
        )
        for each in itertools.islice(read_nbest(str(data / f"{part}.nbest.gz")), count or None)
    ]


class Batch(NamedTuple):
    """Candidates that are scored together, each with its own copy of the source."""

    numbers: list[int]  # indices of the candidates in the list
    source: Tensor  # (B, S)
    target: Tensor  # (B, J+1)


def batches_of(model: Model, sentences: list[Sentence], rows: int) -> Iterator[Batch]:
    """Yield batches of all candidates, sorted by length, with `rows` candidates each, on the device of the model."""
    pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
    if model.config.direction == "backward":
        pairs = [pair[::-1] for pair in pairs]
    encoded = [(model.source.encode(source), model.target.encode(target)) for source, target in pairs]
    order = sorted(range(len(encoded)), key=lambda number: len(encoded[number][1]))
    for start in range(0, len(order), rows):
        numbers = order[start : start + rows]
        source, target = (pad([encoded[n][side] for n in numbers], model.device) for side in (0, 1))
        yield Batch(numbers, source, target)


@torch.inference_mode()
def score_batch(model: Model, batch: Batch) -> Tensor:
    """Return (B,) log p of complete candidates, with all logits of a batch computed at once."""
    outputs, _ = model.network.decode(model.network.encode(batch.source), batch.target)
    logits = functional.linear(outputs, model.network.softmax.weight, model.network.softmax.bias)  # (J, B, V)
    wanted = batch.target[:, 1:].t()  # (J, B)
    losses = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PADDING, reduction="none")
    return -losses.view(wanted.shape).double().sum(dim=0)  # (B,)


def naive(model: Model, sentences: list[Sentence], rows: int = 256) -> np.ndarray:
    """Return (N,) log p of all candidates, computed separately for each candidate."""
    sums = np.empty(sum(len(each.hypotheses) for each in sentences))
    for batch in batches_of(model, sentences, rows):
        sums[batch.numbers] = score_batch(model, batch).cpu().numpy()
    return sums
