"""Speed of this machine in training and scoring.

It is measured with random weights on random text with the sentence lengths of a corpus.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from features.arrays import Integers
from features.models.batches import CELLS, bucketed, pad
from features.models.cost import CorpusSize, TimeFactors, epoch_seconds, forward_seconds, vocabulary_of
from features.models.device import find_device, multiplies_bfloat16
from features.models.network.model import EncoderDecoder
from features.models.tables import find
from features.models.training.request import TrainingRequest
from features.models.vocabulary import END

SECONDS, WARM_UP = 3.0, 3
"""Seconds of a measurement, and batches before it, as the first ones are slower."""

TRANSLATIONS = 8
"""Entries of the random lexicon for each source word."""


def measure_model(request: TrainingRequest, lengths: Integers, corpus: CorpusSize, device: str) -> TimeFactors:
    """Return the time factors of this machine for training a forward model and for scoring with it, in about 8 seconds.

    Args:
        request: the model.
        lengths: (P, 2) words of source and target of some sentence pairs.
        corpus: sizes of the training texts that the model reads and predicts.
        device: `auto`, `cpu` or `cuda`.
    """
    torch.manual_seed(1)
    architecture, training = request.resolve()
    torch_device = find_device(device)
    size = vocabulary_of(training, corpus[1]) + END + 1
    network = EncoderDecoder(architecture, size, size, training.dropout, training.word_dropout).to(torch_device)
    if network.lexicon:
        network.lexicon.words[:, :TRANSLATIONS] = torch.randint(
            END + 1, size, (size, TRANSLATIONS), device=torch_device
        )
        network.lexicon.probabilities[:, :TRANSLATIONS] = 1 / TRANSLATIONS
    optimizer = find("optimizer", training.optimizer)(network.parameters(), lr=training.learning_rate)
    low = training.bfloat16 and multiplies_bfloat16(torch_device)
    tokens_per_word = [side.subwords_per_word if training.bpe else 1 for side in corpus]
    tokens = np.ceil(lengths * tokens_per_word).astype(np.int64)  # (P, 2)

    def sizes(batch: Sequence[int]) -> CorpusSize:
        source, target = (
            side.like(len(batch), float(words)) for side, words in zip(corpus, lengths[batch].sum(axis=0), strict=True)
        )
        return source, target

    def loss(batch: Sequence[int], smoothing: float = 0.0, r_drop: float = 0.0) -> torch.Tensor:
        sides = (pad([_random(count, size) for count in side], torch_device) for side in tokens[batch].T.tolist())
        total: torch.Tensor = network(*sides, smoothing, r_drop).loss  # ()
        return total / len(batch)

    def train(batch: Sequence[int]) -> None:
        optimizer.zero_grad()
        with torch.autocast(torch_device.type, torch.bfloat16, enabled=low):
            result = loss(batch, training.label_smoothing, training.r_drop)
        result.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        result.item()  # waits for the GPU

    @torch.inference_mode()
    def score(batch: Sequence[int]) -> None:
        loss(batch).item()

    batches = bucketed(tokens, training.batch_size, training.batch_tokens)
    trained = _ratio(train, batches, lambda batch: epoch_seconds(request, sizes(batch)))
    network.eval()
    batches = bucketed(tokens, 64, cells=CELLS)
    scored = _ratio(score, batches, lambda batch: forward_seconds(request, sizes(batch)))
    return TimeFactors(training=trained, forward=scored)


def _ratio(
    step: Callable[[Sequence[int]], None], batches: list[list[int]], cost: Callable[[list[int]], float]
) -> float:
    """Return the seconds of a step on batches in random order, relative to its cost, over some seconds."""
    order = np.random.default_rng(1).permutation(len(batches))
    taken = 0.0
    expected = 0.0
    number = 0
    while taken < SECONDS:
        batch = batches[order[number % len(order)]]
        began = time.perf_counter()
        step(batch)
        if number >= WARM_UP:
            taken, expected = taken + time.perf_counter() - began, expected + cost(batch)
        number += 1
    return taken / expected


def _random(count: int, size: int) -> list[int]:
    """Return random words."""
    words: list[int] = torch.randint(END + 1, size, (count,)).tolist()
    return words
