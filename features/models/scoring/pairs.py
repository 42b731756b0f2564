"""Score given translations one by one: pairs of token lists in, log-probabilities of all tokens out."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from features.arrays import AttentionRows
from features.feature import Reading, Sentence
from features.models.batches import CELLS, bucketed, pad
from features.models.device import on_device
from features.models.folder import Model
from features.models.network.model import TokenScores
from features.models.scoring.shared import encodings_of, spans
from features.models.scoring.values import SourceWords, of_tokens, select, total
from features.progress import show_status

BATCH = 256
"""Maximum number of candidates in a batch."""


SentencePair = tuple[tuple[str, ...], tuple[str, ...]]
"""Tokens of a source and of its translation, in this order for models of both directions."""


def score_pairs(
    models: Sequence[Model], pairs: Sequence[SentencePair], shared: bool = False
) -> Iterator[tuple[list[int], TokenScores]]:
    """Yield (indices of pairs, their scores), batch by batch, until each pair has been scored once.

    Several models must have the same direction and target vocabulary. Their distributions are averaged, and attention
    is that of the first model. Each source of a batch is encoded once, and with `shared` the common prefixes and
    suffixes of sources, if the encoder allows it. Shapes are as in `TokenScores`, with tokens in
    the order of the model. Row n belongs to the pair with the n-th index.
    """
    first = models[0]
    sides = _sides(first, pairs)
    targets = [encode_target(first, target) for _, target in sides]
    sources = [source for source, _ in sides]
    done = 0
    for span in spans(models, sources) if shared else [slice(0, len(sources))]:
        encodings = [encodings_of(model, sources[span], shared) for model in models]
        lengths = np.array([list(map(len, side[span])) for side in (sources, targets)]).T  # (N, 2)
        for numbers in bucketed(lengths, BATCH, cells=CELLS):
            target = pad([targets[span.start + number] for number in numbers], first.device)  # (B, J+1)
            with torch.inference_mode():
                scores = [
                    model.network.score(each.batch(numbers), target)
                    for model, each in zip(models, encodings, strict=True)
                ]
            log_probs = mean_log([each.log_probs for each in scores])  # (B, J)
            yield [span.start + number for number in numbers], scores[0]._replace(log_probs=log_probs)
            done += len(numbers)
            show_status(f"candidate {done:,} of {len(pairs):,}")


def score_one_by_one(
    models: Sequence[Model],
    sentences: Sequence[Sentence],
    names: Sequence[str],
    attention: bool = False,
    shared: bool = False,
) -> Reading:
    """Score each candidate from its first word.

    Equal pairs are scored once. With `shared`, common prefixes and suffixes of sources are encoded once.
    """
    pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
    distinct = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    first, sides = models[0], _sides(models[0], distinct)
    values = torch.empty(len(distinct), len(names), dtype=torch.float64, device=first.device)
    rows: list[AttentionRows] = [np.empty((0, 0), dtype=np.float32)] * len(distinct)
    for numbers, scores in score_pairs(models, list(distinct), shared):
        sums = total(of_tokens(scores.log_probs, scores.unknown, scores.attention))
        expected = fertility(first, [sides[number][0] for number in numbers]) if "fertility" in names else ()
        rows_of_batch = on_device(numbers, first.device)  # (B,)
        values[rows_of_batch] = select(names, sums, SourceWords(scores.source_mask, expected))  # (B, names)
        for number, row in zip(numbers, scores.attention.float().cpu().numpy(), strict=True) if attention else ():
            source, target = sides[number]
            rows[number] = row[: len(encode_target(first, target)) + 1, : len(first.source.encode(source)) + 2]
    order = [distinct[pair] for pair in pairs]
    by_name = dict(zip(names, values.cpu().numpy()[order].T, strict=True))  # (N,) each
    return Reading(by_name, [rows[index] for index in order] if attention else [])


def fertility(model: Model, sources: Sequence[tuple[str, ...]]) -> tuple[Tensor, Tensor]:
    """Return mean and variance (B, S) of the attention that source words should get."""
    with torch.inference_mode():
        return model.network.fertility(pad([model.source.encode(source) for source in sources], model.device))


def mean_log(log_probs: Sequence[Tensor]) -> Tensor:
    """Return the log of the models' mean probability of each token."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))  # shape of one of them


def encode_target(model: Model, tokens: Sequence[str]) -> list[int]:
    """Return the vocabulary indices of a target, in the order in which the model predicts them."""
    numbers = model.target.encode(tokens)
    return numbers[::-1] if model.config.right_to_left else numbers


def _sides(model: Model, pairs: Iterable[SentencePair]) -> list[SentencePair]:
    """Return pairs of network input and network output."""
    return [pair[::-1] if model.config.direction == "backward" else pair for pair in pairs]
