"""Where a model runs."""

import torch

from moses_io.errors import InputError

DEVICES = ("auto", "cpu", "cuda")


def find_device(name: str) -> torch.device:
    """Return the device of that name; `auto` is the GPU where there is one."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("--device cuda: torch sees no GPU here; use auto or cpu")
    return torch.device("cuda" if name != "cpu" and available else "cpu")
