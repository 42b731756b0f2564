"""Files of tensors with a text and a digest of both, and the state of an optimizer as tensors.

Killed trainings are resumed from such files.
"""

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
import safetensors.torch
import torch
from torch import Tensor

from moses_io.files.errors import InputError
from moses_io.files.json_files import as_written
from moses_io.files.streams import check_plain, replacing

Tensors = dict[str, Tensor]
"""Tensors by name."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number of epochs or updates, as read from a file."""


def write_tensors(path: Path, text: str, tensors: Tensors) -> None:
    """Write a text and tensors into a file, with a digest of both."""
    texts = {"run": text, "sha256": _checksum(text, tensors)}
    try:
        with replacing(path) as temporary:
            safetensors.torch.save_file(tensors, temporary, texts)  # without a copy in memory
    except safetensors.SafetensorError as error:
        raise InputError(f"{path}: cannot be written ({error})") from None


def read_tensors(path: Path) -> tuple[str, Tensors]:
    """Return the text and the tensors of a file. Raises `InputError` if it is damaged."""
    check_plain(path)
    try:
        with safetensors.safe_open(path, "pt") as stream:
            texts = stream.metadata() or {}
        tensors = safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged ({error})") from None
    with as_written(path):
        text: str = texts.get("run", "")
        if texts.get("sha256") != _checksum(text, tensors):
            raise InputError(f"{path}: damaged, or written by another version")
    return text, tensors


def optimizer_state(optimizer: torch.optim.Optimizer) -> Tensors:
    """Return the state of an optimizer."""
    states = optimizer.state_dict()["state"].items()
    return {
        f"optimizer.{number}.{name}": tensor.cpu().contiguous()
        for number, state in states
        for name, tensor in state.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors, weights: int) -> None:
    """Restore the state of an optimizer of a number of weights."""
    states = {number: under(tensors, f"optimizer.{number}.") for number in range(weights)}
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": {n: state for n, state in states.items() if state}, "param_groups": groups})


def _checksum(text: str, tensors: Tensors) -> str:
    """Return a digest that detects any change of a checkpoint."""
    total = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(tensor.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()


def under(tensors: Tensors, prefix: str) -> Tensors:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
