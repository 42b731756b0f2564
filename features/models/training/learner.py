"""One direction of a training: its network, its metrics, and its folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from features.arrays import Integers
from features.models.batches import CELLS, bucketed, pad
from features.models.config import METRICS, ModelConfig
from features.models.device import multiplies_bfloat16
from features.models.network.model import EncoderDecoder, Objective
from features.models.training.ranks import ALONE, Ranks
from features.models.vocabulary import Vocabulary
from features.ragged import Ragged
from moses_io.files.json_files import write_json_lines


@dataclass(frozen=True)
class EncodedCorpus:
    """P sentence pairs as vocabulary indices, with the word counts of their targets.

    Attributes:
        source: ids of each source sentence of the network, without `<s>` and `</s>`.
        target: ids of each target sentence, without `<s>` and `</s>`.
        target_lengths: (P,) words of each target before segmentation into subwords, plus one for `</s>`.
        links: encoded links between the ids of each pair, no rows if not aligned.
    """

    source: Ragged
    target: Ragged
    target_lengths: Integers
    links: Ragged

    @classmethod
    def joined(cls, parts: "Sequence[EncodedCorpus]") -> "EncodedCorpus":
        """Return the pairs of one or several parts, of which either all are aligned or none."""
        return cls(
            source=Ragged.joined([part.source for part in parts]),
            target=Ragged.joined([part.target for part in parts]),
            target_lengths=np.concatenate([part.target_lengths for part in parts]),
            links=Ragged.joined([part.links for part in parts]),
        )

    @cached_property
    def lengths(self) -> Integers:
        """(P, 2) number of ids of source and target."""
        return np.stack([self.source.lengths, self.target.lengths], axis=1)

    def tokens(self, numbers: Sequence[int]) -> int:
        """Return the number of target tokens of some pairs, `</s>` included."""
        return int(self.target.lengths[numbers].sum()) + len(numbers)


@dataclass
class Learner:
    """A network in training."""

    config: ModelConfig
    folder: Path
    network: EncoderDecoder
    source: Vocabulary  # of the network's input
    target: Vocabulary  # of the network's output
    rows: list[dict[str, Any]] = field(default_factory=list)  # lines of `metrics.jsonl`, see `metrics.read_epochs`

    def forward(self, corpus: EncodedCorpus, numbers: Sequence[int], device: torch.device) -> Objective:
        """Return the objective of a batch of pairs, given by their indices."""
        settings = self.config.training
        source, target = (pad([side[number] for number in numbers], device) for side in (corpus.source, corpus.target))
        low = settings.bfloat16 and multiplies_bfloat16(device)
        smoothing, r_drop = (settings.label_smoothing, settings.r_drop) if self.network.training else (0.0, 0.0)
        with torch.autocast(device.type, torch.bfloat16, enabled=low):
            objective: Objective = self.network(source, target, smoothing, r_drop)
            return objective

    def add_row(self, row: dict[str, Any]) -> None:
        """Add the metrics of an epoch and write the file."""
        self.rows.append(row)
        self.write_rows()

    def write_rows(self) -> None:
        """Write the metrics of all epochs, replacing the file."""
        write_json_lines(str(self.folder / METRICS), self.rows)


@torch.inference_mode()
def loss_of(learner: Learner, corpus: EncodedCorpus, device: torch.device, ranks: Ranks = ALONE) -> float:
    """Return the sum of -log p in nats, `</s>` included, of the targets in this process's share."""
    learner.network.eval()
    batches = ranks.shard(bucketed(corpus.lengths, 64, cells=CELLS))
    return sum((float(learner.forward(corpus, numbers, device).plain) for numbers in batches), 0.0)
