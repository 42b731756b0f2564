"""Settings and state of a fine-tuning, and the checkpoint from which a killed one is resumed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import torch
from torch import nn

from features.models.pretrained.encoding import Pair
from features.models.pretrained.network import Network
from features.models.tensor_files import (
    Count,
    Tensors,
    optimizer_state,
    read_tensors,
    restore_optimizer,
    write_tensors,
)
from features.ragged import Ragged
from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.json_files import as_written

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=2**31)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a fine-tuning.

    Attributes:
        epochs: maximum number of epochs.
        learning_rate: highest learning rate of AdamW (default: 3e-5, with LoRA 3e-4).
        batch_tokens: maximum number of tokens in a batch, with padding, on the longer side. For a language model, of
            prompts and targets together.
        gradient_accumulation: number of batches in an update.
        warmup_updates: updates in which the learning rate rises. It then falls linearly to a tenth.
        label_smoothing: probability that is distributed over all tokens.
        clip_norm: maximum norm of the gradient.
        patience: number of epochs without a better perplexity of dev after which the training ends.
        lora_rank: rank of LoRA's matrices (Hu et al. 2022) in all linear layers, or 0 to train all weights.
        seed: random seed of dropout, of the order of batches, and of LoRA's initial weights.
    """

    epochs: PositiveInt = 3
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    batch_tokens: PositiveInt = 2000
    gradient_accumulation: PositiveInt = 1
    warmup_updates: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 100
    label_smoothing: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.1
    clip_norm: Annotated[float, msgspec.Meta(gt=0, le=2**31)] = 1.0
    patience: PositiveInt = 2
    lora_rank: Annotated[int, msgspec.Meta(ge=0, le=2**16)] = 0
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 1

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate, or its default."""
        return self.learning_rate or (3e-4 if self.lora_rank else 3e-5)


def parse_settings(texts: dict[str, str]) -> Settings:
    """Return settings given as text. Raises `InputError` if a name is unknown or a value is wrong."""
    names = list(Settings.__struct_fields__)
    for name in texts:
        if name not in names:
            raise InputError(f"unknown setting {shown(name)}{nearest(name, names)}")
    try:
        return msgspec.convert(texts, Settings, strict=False)
    except msgspec.ValidationError as error:
        reason, _, name = str(error).replace("`", "").rpartition(" - at $.")
        expected = reason.lower().partition(", got")[0]
        raise InputError(f"setting {name!r}: {expected}, found {shown(texts[name])}") from None


class Corpus(NamedTuple):
    """Tokens of N sentence pairs."""

    sources: Ragged
    targets: Ragged
    words: int  # number of words of the targets, with an end of sentence each

    def pairs(self, numbers: Sequence[int]) -> list[Pair]:
        """Return the pairs with these indices."""
        return [(tuple(self.sources[number]), tuple(self.targets[number])) for number in numbers]


class Progress(msgspec.Struct, forbid_unknown_fields=True):
    """Progress of a training.

    Attributes:
        epoch: number of completed epochs.
        updates: number of optimizer steps.
        best: lowest perplexity of dev, or None before the first epoch.
        stale: epochs since the best one.
        seconds: training time.
        rows: metrics of each epoch.
    """

    epoch: Count = 0
    updates: Count = 0
    best: float | None = None
    stale: Count = 0
    seconds: float = 0.0
    rows: list[dict[str, Any]] = []


@dataclass
class Run:
    """A training in progress.

    Attributes:
        settings: its settings.
        model: the model of transformers, with LoRA's layers if any.
        network: its network.
        corpus: the training pairs.
        dev: the dev pairs.
        optimizer: AdamW over the trained weights.
        planned: number of updates in all epochs.
        identity: digest of everything that determines the result.
        progress: progress so far.
    """

    settings: Settings
    model: Any
    network: Network
    corpus: Corpus
    dev: Corpus
    optimizer: torch.optim.Optimizer
    planned: int
    identity: str
    progress: Progress = field(default_factory=Progress)

    @property
    def weights(self) -> dict[str, nn.Parameter]:
        """The trained weights by name."""
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    @property
    def ended(self) -> bool:
        """Whether no epoch is left."""
        return self.progress.epoch >= self.settings.epochs or self.progress.stale >= self.settings.patience


def save_weights(run: Run, path: Path) -> None:
    """Write the trained weights."""
    write_tensors(path, "", _on_cpu(run))


def load_weights(run: Run, path: Path) -> None:
    """Read the trained weights. Raises `InputError` if the file is damaged."""
    _, tensors = read_tensors(path)
    with as_written(path):
        _set(run, tensors)


def save(run: Run, path: Path) -> None:
    """Write everything that determines how the training continues."""
    tensors = {f"weight.{name}": weight for name, weight in _on_cpu(run).items()} | optimizer_state(run.optimizer)
    text = json.dumps({"identity": run.identity, "progress": msgspec.structs.asdict(run.progress)})
    write_tensors(path, text, tensors)


def restore(run: Run, path: Path) -> None:
    """Continue from a checkpoint.

    Raises:
        InputError: the file is damaged, or belongs to another training.
    """
    text, tensors = read_tensors(path)
    with as_written(path):
        saved = json.loads(text)
        if saved["identity"] != run.identity:
            raise InputError(f"{path}: of another training")
        run.progress = msgspec.convert(saved["progress"], Progress)
        _set(run, {name.removeprefix("weight."): each for name, each in tensors.items()})
        restore_optimizer(run.optimizer, tensors, len(run.weights))


def _on_cpu(run: Run) -> Tensors:
    return {name: weight.detach().cpu().contiguous() for name, weight in run.weights.items()}


def _set(run: Run, tensors: Tensors) -> None:
    with torch.no_grad():
        for name, weight in run.weights.items():
            weight.copy_(tensors[name])
