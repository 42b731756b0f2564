"""State of a training in progress, and the checkpoint file from which a killed training is resumed."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor, nn

from features.models.folder import digest_of, no_words
from features.models.settings import Training
from features.models.tables import find
from features.models.tensor_files import (
    Count,
    Tensors,
    optimizer_state,
    read_tensors,
    restore_optimizer,
    under,
    write_tensors,
)
from features.models.training.learner import EncodedCorpus, Learner
from features.models.training.ranks import ALONE, Ranks
from features.progress import log
from features.ragged import Ragged
from features.sentences import TokenPair
from moses_io.files.errors import InputError, shown
from moses_io.files.json_files import as_written

TensorKinds = dict[str, tuple[torch.Size, torch.dtype]]
"""Shapes and dtypes of tensors by name."""

Amount = Annotated[float, msgspec.Meta(ge=0)]


class Progress(msgspec.Struct, forbid_unknown_fields=True):
    """Progress of a training."""

    epoch: Count = 0  # number of epochs
    updates: Count = 0  # number of optimizer steps
    best: Amount = float("inf")  # lowest perplexity of dev
    stale: Count = 0  # epochs since the best one
    seconds: Amount = 0.0  # training time


class _Written(msgspec.Struct):
    """Contents of a checkpoint, without the tensors."""

    progress: Progress
    random: tuple[int, tuple[int, ...], float | None]  # state of `Run.rng`
    recent: Count  # number of epochs whose weights are stored
    rows: list[list[dict[str, Any]]]  # `Learner.rows` of each learner
    processes: Count = 1


@dataclass
class Run:
    """A training of one network, or of two networks together."""

    settings: Training
    learners: list[Learner]  # one, or the forward and the backward one
    pairs: Sequence[TokenPair]  # training pairs in the direction of the first learner, empty without BPE-dropout
    links: Ragged  # encoded links of each pair, in the same direction, no rows without guided alignment
    corpus: list[EncodedCorpus]  # encoded training pairs for each learner, in the same order
    dev: list[EncodedCorpus]  # encoded dev pairs for each learner
    optimizer: torch.optim.Optimizer  # of the weights of all learners
    planned: int  # number of updates in all epochs
    device: torch.device
    rng: random.Random  # determines the order of the batches, equally in all processes
    ranks: Ranks = ALONE  # the processes that train together
    progress: Progress = field(default_factory=Progress)
    recent: list[list[Tensors]] = field(default_factory=list)  # weights of the last epochs, for each learner

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Weights of all learners."""
        return [weight for learner in self.learners for weight in learner.network.parameters()]


def weights_of(learner: Learner) -> Tensors:
    """Return a copy of a learner's weights on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in learner.network.state_dict().items()}


def random_state(device: torch.device) -> Tensors:
    """Return the state of this process's random number generators, which determine dropout."""
    state = {"random": torch.get_rng_state()}
    if device.type == "cuda":
        state["random.cuda"] = torch.cuda.get_rng_state(device)
    return state


def save(run: Run, path: Path, states: Sequence[Tensors]) -> None:
    """Write everything that determines how the training continues. `states` has the `random_state` of each process."""
    tensors = {_of_rank(rank, name): each for rank, state in enumerate(states) for name, each in state.items()}
    for number, learner in enumerate(run.learners):
        tensors |= {f"network.{number}.{name}": tensor for name, tensor in weights_of(learner).items()}
        for age, weights in enumerate(run.recent):
            tensors |= {f"recent.{age}.{number}.{name}": tensor for name, tensor in weights[number].items()}
    tensors |= optimizer_state(run.optimizer)
    metadata = {
        "progress": msgspec.structs.asdict(run.progress),
        "random": run.rng.getstate(),
        "recent": len(run.recent),
        "processes": len(states),
        "rows": [learner.rows for learner in run.learners],
        "models": _models(run),
    }
    write_tensors(path, json.dumps(metadata), tensors)


def restore(run: Run, path: Path) -> None:
    """Restore a run from a checkpoint.

    Raises:
        InputError: the file is damaged, or belongs to another training.
    """
    text, tensors = read_tensors(path)
    with as_written(path):
        _restore(run, json.loads(text), tensors, path)


def _restore(run: Run, metadata: Any, tensors: Tensors, path: Path) -> None:
    if metadata["models"] != _models(run):
        raise InputError(f"{path}: of another training. The vocabularies or settings of the folder differ")
    written = msgspec.convert(metadata, _Written)
    recent = written.recent
    _check_tensors(run, tensors, recent)
    run.progress = written.progress
    run.rng.setstate(written.random)
    _restore_random(run, tensors)
    if run.progress.epoch and written.processes != run.ranks.size:
        processes = f"{written.processes} processes, now {run.ranks.size}"
        log.warning(f"{path.parent}: this training had {processes}: dropout will differ")
    for number, (learner, rows) in enumerate(zip(run.learners, written.rows, strict=True)):
        learner.rows = rows
        learner.network.load_state_dict(under(tensors, f"network.{number}."))
    run.recent = [
        [under(tensors, f"recent.{age}.{number}.") for number in range(len(run.learners))] for age in range(recent)
    ]
    restore_optimizer(run.optimizer, tensors, len(run.parameters))


def _check_tensors(run: Run, tensors: Tensors, recent: int) -> None:
    """Raise `ValueError` if names, shapes or dtypes differ from the run's.

    Without this check, training would fail only some steps later.
    """
    if recent > run.settings.average_checkpoints:
        raise ValueError(f"weights of {recent} epochs, expected at most {run.settings.average_checkpoints}")
    left = {name for name in tensors if name.split(".")[0] != "random"}
    for number, learner in enumerate(run.learners):
        expected = _kinds(learner.network.state_dict())
        for prefix in (f"network.{number}.", *(f"recent.{age}.{number}." for age in range(recent))):
            own = under(tensors, prefix)
            _check_kinds(prefix, _kinds(own), expected)
            if reason := no_words(own, len(learner.target)):
                raise ValueError(f"{prefix}…: {reason}")
            left -= {prefix + name for name in own}
    for number, weight in enumerate(run.parameters):
        prefix = f"optimizer.{number}."
        if own := under(tensors, prefix):  # a weight that was never updated has no state
            _check_kinds(prefix, _kinds(own), _state_kinds(run.settings, weight))
            left -= {prefix + name for name in own}
    if left:
        raise ValueError(f"unknown tensor {shown(min(left))}")


def _state_kinds(settings: Training, weight: Tensor) -> TensorKinds:
    """Return names, shapes and dtypes of a weight's optimizer state, found by one step on a small tensor.

    A state tensor with the shape of the small tensor has the shape of the weight. Other state tensors keep their shape.
    """
    probe = nn.Parameter(torch.zeros(2))
    probe.grad = torch.zeros(2)
    optimizer: torch.optim.Optimizer = find("optimizer", settings.optimizer)([probe], lr=settings.learning_rate)
    optimizer.step()
    state = optimizer.state[probe].items()
    return {name: (weight.shape if own.shape == probe.shape else own.shape, own.dtype) for name, own in state}


def _check_kinds(prefix: str, found: TensorKinds, expected: TensorKinds) -> None:
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            kinds = [f"{kind[1]} {list(kind[0])}" if (kind := each.get(name)) else "none" for each in (found, expected)]
            raise ValueError(f"tensor {shown(prefix + name)} is {kinds[0]}, expected {kinds[1]}")


def _kinds(tensors: Tensors) -> TensorKinds:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _restore_random(run: Run, tensors: Tensors) -> None:
    """Restore the random state of this process. If it has none, derive one from the first process's state."""
    own, own_of_gpu = (_of_rank(run.ranks.rank, name) for name in ("random", "random.cuda"))
    torch.set_rng_state(tensors["random"])
    if own in tensors:
        torch.set_rng_state(tensors[own])
    else:
        torch.manual_seed(int(torch.randint(2**63 - 1, (run.ranks.rank,))[-1]))
    if run.device.type == "cuda" and own_of_gpu in tensors:
        torch.cuda.set_rng_state(tensors[own_of_gpu], run.device)


def _of_rank(rank: int, name: str) -> str:
    return f"{name}.{rank}" if rank else name


def _models(run: Run) -> list[str]:
    """Return a digest of each model's files, without its weights."""
    return [digest_of(learner.folder, learner.config.parts) for learner in run.learners]
