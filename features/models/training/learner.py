"""One direction of a training: its network, what is measured of it, and what its folder shows."""

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
from moses_io.alignment import Alignment, turned
from moses_io.files.streams import open_output

TokenPair = tuple[list[str], list[str]]
"""Tokens of a source sentence and of its translation, as the network sees them."""


@dataclass
class Learner:
    """A network under training."""

    config: ModelConfig
    folder: Path
    network: EncoderDecoder
    source: Vocabulary  # of what the network reads
    target: Vocabulary  # of what it predicts
    rows: list[dict[str, Any]] = field(default_factory=list)  # a line of `metrics.jsonl` for each epoch

    def forward(self, pairs: Sequence[EncodedPair], numbers: Sequence[int], device: torch.device) -> Objective:
        """Run the network over a batch of pairs, in its own direction."""
        settings = self.config.training
        source, target = (pad([pairs[number][side] for number in numbers], device) for side in (0, 1))
        low = settings.bfloat16 and multiplies_bfloat16(device)
        rdrop = settings.rdrop if self.network.training else 0.0
        with torch.autocast(device.type, torch.bfloat16, enabled=low):
            objective: Objective = self.network(source, target, settings.smoothing, rdrop)
            return objective

    def add_row(self, row: dict[str, Any]) -> None:
        """Write an epoch down."""
        self.rows.append(row)
        self.write_rows()

    def write_rows(self) -> None:
        """Write all epochs down anew."""
        with open_output(str(self.folder / METRICS)) as stream:
            stream.writelines(json.dumps(line).encode() + b"\n" for line in self.rows)


@dataclass(frozen=True)
class EncodedCorpus:
    """Sentence pairs in numbers, and how many words their targets have."""

    pairs: list[EncodedPair]  # in the direction of the network
    target_lengths: list[int]  # tokens of each target before they were cut into pieces, and one for `</s>`
    links: list[Alignment]  # of the numbers of each pair, without sentinels; empty if the corpus has no alignment

    def tokens(self, numbers: Sequence[int]) -> int:
        """Return the target's tokens of some pairs, `</s>` included."""
        return sum(len(self.pairs[number][1]) + 1 for number in numbers)


def planned_updates(
    settings: Training, corpus: EncodedCorpus, pairs: Sequence[TokenPair], learners: Sequence[Learner]
) -> int:
    """Return how many updates a corpus gives; where words are cut by chance, as its pairs do when they are so cut."""
    if settings.bpe_dropout and settings.tokens:
        corpus = encode(pairs, learners, dropout=Dropout(settings.bpe_dropout, random.Random(settings.seed)))[0]
    batches = len(bucketed(corpus.pairs, settings.batch, settings.tokens))
    planned = settings.epochs * math.ceil(batches / settings.accumulate)
    return min(planned, settings.updates) if settings.updates else planned


def encode(
    pairs: Sequence[TokenPair],
    learners: Sequence[Learner],
    links: Sequence[Alignment] = (),
    dropout: Dropout | None = None,
) -> list[EncodedCorpus]:
    """Turn token pairs, and the links of each if they are known, into numbers for each learner.

    The second learner reads the same the other way round. A right-to-left model has its targets reversed. Words are cut
    by chance with `dropout`, see `Vocabulary.encode`.
    """
    first = learners[0]
    cut = [(first.source.cut(left, dropout), first.target.cut(right, dropout)) for left, right in pairs]
    corpora = []
    for learner, way in zip(learners, (1, -1), strict=False):
        mirrored = learner.config.right_to_left
        sides = [pair[::way] for pair in cut]
        sizes = ([len(pieces) for pieces in side] for pair in sides for side in pair)
        known = links if way == 1 else [turned(each) for each in links]
        corpora.append(
            EncodedCorpus(
                pairs=[(flat(source), flat(target)[:: -1 if mirrored else 1]) for source, target in sides],
                target_lengths=[len(target) + 1 for _, target in sides],
                links=[spread(each, next(sizes), next(sizes), mirrored) for each in known],
            )
        )
    return corpora


def spread(links: Alignment, source_sizes: Sequence[int], target_sizes: Sequence[int], mirrored: bool) -> Alignment:
    """Return links between all pieces of linked words, of which `sizes` says how many each has.

    `mirrored` says that the target is read from its last piece to its first.
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
    """Return the sum of -log p of the targets that are the share of this process, `</s>` included, in nats."""
    learner.network.eval()
    batches = ranks.share(bucketed(corpus.pairs, 64, cells=CELLS))
    return sum((float(learner.forward(corpus.pairs, numbers, device).plain) for numbers in batches), 0.0)
