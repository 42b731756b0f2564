"""One direction of a training: its network, its metrics, and its folder."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from features.models.batches import CELLS, EncodedPair, bucketed, pad
from features.models.config import METRICS, ModelConfig
from features.models.device import multiplies_bfloat16
from features.models.network.model import EncoderDecoder, Objective
from features.models.settings import Training
from features.models.training.ranks import ALONE, Ranks
from features.models.vocabulary import Dropout, Vocabulary, flat
from moses_io.alignment import Alignment, Alignments, turned
from moses_io.files.streams import open_output

TokenPair = tuple[list[str], list[str]]
"""Tokens of a source sentence and of its translation, as the network reads and predicts them."""


@dataclass
class Learner:
    """A network in training."""

    config: ModelConfig
    folder: Path
    network: EncoderDecoder
    source: Vocabulary  # of the network's input
    target: Vocabulary  # of the network's output
    rows: list[dict[str, Any]] = field(default_factory=list)  # lines of `metrics.jsonl`, one for each epoch

    def forward(self, pairs: Sequence[EncodedPair], numbers: Sequence[int], device: torch.device) -> Objective:
        """Return the objective of a batch of pairs, given by their indices."""
        settings = self.config.training
        source, target = (pad([pairs[number][side] for number in numbers], device) for side in (0, 1))
        low = settings.bfloat16 and multiplies_bfloat16(device)
        rdrop = settings.r_drop if self.network.training else 0.0
        with torch.autocast(device.type, torch.bfloat16, enabled=low):
            objective: Objective = self.network(source, target, settings.label_smoothing, rdrop)
            return objective

    def add_row(self, row: dict[str, Any]) -> None:
        """Add the metrics of an epoch and write the file."""
        self.rows.append(row)
        self.write_rows()

    def write_rows(self) -> None:
        """Write the metrics of all epochs, replacing the file."""
        with open_output(str(self.folder / METRICS)) as stream:
            stream.writelines(json.dumps(line).encode() + b"\n" for line in self.rows)


@dataclass(frozen=True)
class EncodedCorpus:
    """Sentence pairs as vocabulary indices, with the word counts of their targets."""

    pairs: list[EncodedPair]  # in the direction of the network
    target_lengths: list[int]  # words of each target before segmentation into subwords, plus one for `</s>`
    links: Alignments  # between the indices of each pair, without `<s>` and `</s>`, empty if not aligned

    def tokens(self, numbers: Sequence[int]) -> int:
        """Return the number of target tokens of some pairs, `</s>` included."""
        return sum(len(self.pairs[number][1]) + 1 for number in numbers)


def planned_updates(
    settings: Training, corpus: EncodedCorpus, pairs: Sequence[TokenPair], learners: Sequence[Learner]
) -> int:
    """Return the number of updates in a training on a corpus.

    With BPE-dropout and batches measured in tokens, the number depends on the random segmentation. It is then computed
    from one random segmentation of the pairs.
    """
    if settings.bpe_dropout and settings.batch_tokens:
        corpus = encode(pairs, learners, dropout=Dropout(settings.bpe_dropout, random.Random(settings.seed)))[0]
    batches = len(bucketed(corpus.pairs, settings.batch_size, settings.batch_tokens))
    planned = settings.epochs * math.ceil(batches / settings.gradient_accumulation)
    return min(planned, settings.updates) if settings.updates else planned


def encode(
    pairs: Sequence[TokenPair],
    learners: Sequence[Learner],
    links: Sequence[Alignment] = (),
    dropout: Dropout | None = None,
) -> list[EncodedCorpus]:
    """Encode token pairs, and the links of each pair if they are known, for each learner.

    The second learner reads the same pairs in the opposite direction. The targets of a right-to-left model are
    reversed. With `dropout`, words are segmented at random (`Vocabulary.encode`).
    """
    first, corpora = learners[0], [EncodedCorpus([], [], Alignments()) for _ in learners]
    for number, (left, right) in enumerate(pairs):  # pair by pair: the subwords of all words would fill the memory
        cut = first.source.cut(left, dropout), first.target.cut(right, dropout)
        for learner, corpus, way in zip(learners, corpora, (1, -1), strict=False):
            (source, target), mirrored = cut[::way], learner.config.right_to_left
            corpus.pairs.append((flat(source), flat(target)[:: -1 if mirrored else 1]))
            corpus.target_lengths.append(len(target) + 1)
            if links:
                known = links[number] if way == 1 else turned(links[number])
                corpus.links.append(spread(known, list(map(len, source)), list(map(len, target)), mirrored))
    return corpora


def spread(links: Alignment, source_sizes: Sequence[int], target_sizes: Sequence[int], mirrored: bool) -> Alignment:
    """Return links between all subwords of linked words.

    Args:
        links: links between words.
        source_sizes: number of subwords of each source word.
        target_sizes: number of subwords of each target word.
        mirrored: whether the target is read from its last subword to its first.
    """
    sources, targets = _pieces(source_sizes), _pieces(target_sizes)
    last = sum(target_sizes) - 1
    return frozenset(
        (source, last - target if mirrored else target)
        for i, j in links
        for source in sources[i]
        for target in targets[j]
    )


def _pieces(sizes: Sequence[int]) -> list[range]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(range(start, start + size))
        start += size
    return pieces


@torch.inference_mode()
def loss_of(learner: Learner, corpus: EncodedCorpus, device: torch.device, ranks: Ranks = ALONE) -> float:
    """Return the sum of -log p in nats, `</s>` included, of the targets in this process's share."""
    learner.network.eval()
    batches = ranks.share(bucketed(corpus.pairs, 64, cells=CELLS))
    return sum((float(learner.forward(corpus.pairs, numbers, device).plain) for numbers in batches), 0.0)
