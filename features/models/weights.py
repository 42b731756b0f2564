"""Weights in a file, held against the network that they are for before anything is allocated."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from features.models.network.model import EncoderDecoder
from features.models.settings import Architecture
from moses_io.errors import InputError

_TYPES = {torch.float32: "F32", torch.int32: "I32"}
"""Types of tensors as safetensors names them: weights, and tables of words."""


class _Unfilled(TorchFunctionMode):
    """Gives tensors no first values: for those without memory torch does it in Python, and loads its compiler.

    It is asked for attributes of tensors, too, whose slots have no `__module__`.
    """

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def outline(architecture: Architecture, source_size: int, target_size: int) -> dict[str, Tensor]:
    """Return the weights of a network by name, with shapes and nothing in them, which takes no memory."""
    with torch.device("meta"), _Unfilled():
        return EncoderDecoder(architecture, source_size, target_size).state_dict()


def load_network(path: Path, architecture: Architecture, source_size: int, target_size: int) -> EncoderDecoder:
    """Return a network with the weights of a file.

    Raises:
        InputError: the file is damaged, or its tensors are not those of such a network.
    """
    tensors = load_weights(path, outline(architecture, source_size, target_size), target_size)
    network = EncoderDecoder(architecture, source_size, target_size)
    network.load_state_dict(tensors)
    return network


def load_weights(path: Path, expected: Mapping[str, Tensor], target_size: int) -> dict[str, Tensor]:
    """Return the tensors of a file, by the names, types and shapes of those that are expected.

    Raises:
        InputError: the file is damaged, or its tensors are others.
    """
    try:
        reason = _difference(path, expected)
        tensors = safetensors.torch.load_file(path) if not reason else {}
        reason = reason or no_words(tensors, target_size)
    except (safetensors.SafetensorError, OSError) as error:
        reason = str(error).splitlines()[0]
    if reason:
        raise InputError(f"{path}: damaged, or of another model ({reason})")
    return tensors


def _difference(path: Path, expected: Mapping[str, Tensor]) -> str:
    """Say what of the names, types and shapes in the head of a file is not as expected; nothing if all is."""
    with safetensors.safe_open(path, "pt") as stream:
        slices = {name: stream.get_slice(name) for name in stream.keys()}  # noqa: SIM118
        shapes = {name: f"{each.get_dtype()} {list(each.get_shape())}" for name, each in slices.items()}
    for name in sorted(shapes.keys() | expected.keys()):
        if name not in expected:
            return f"unknown tensor {name!r}"
        if name not in shapes:
            return f"no tensor {name!r}"
        shape = f"{_TYPES[expected[name].dtype]} {list(expected[name].shape)}"
        if shapes[name] != shape:
            return f"tensor {name!r} is {shapes[name]}, expected {shape}"
    return ""


def no_words(tensors: Mapping[str, Tensor], target_size: int) -> str:
    """Say which table of target words has a number that is none; nothing if all are."""
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int32 and not ((tensor >= 0) & (tensor < target_size)).all():
            return f"tensor {name!r} has a number that is no word's"
    return ""
