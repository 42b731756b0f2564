"""Devices on which models run, and their memory."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from features.arrays import Array, Integers
from features.feature import check_device
from moses_io.files.errors import InputError

Work = TypeVar("Work")
Result = TypeVar("Result")

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h

_NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""Parts of messages about failed allocations without a type of their own: of a CPU, CUDA, and cuBLAS or cuDNN."""


# Use one thread after a fork, because OpenMP would wait forever for the threads of the parent.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def check_process(device: torch.device, process: int) -> None:
    """Raise `InputError` if models on a GPU were opened before a fork.

    Args:
        device: device of the models.
        process: id of the process that opened them.
    """
    if device.type == "cuda" and process != os.getpid():
        advice = "Use the start method 'spawn', and open the models in the new process"
        raise InputError(f"models on a GPU cannot be used in a forked process. {advice}")


def find_device(name: str) -> torch.device:
    """Return the device with this name. `auto` is the GPU if there is one, else the CPU.

    Raises:
        InputError: an unknown name, or no GPU.
    """
    check_device(name)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("--device cuda: torch sees no GPU here. Use auto or cpu")
    if name != "cpu" and available:
        # TF32 would round float32 to 10 bits: in recurrent layers, and in products if the environment asks for it.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch.device("cuda")
    _keep_freed_memory()
    return torch.device("cpu")


def on_device(
    values: Array | Integers | Sequence[object], device: torch.device, dtype: torch.dtype | None = None
) -> Tensor:
    """Return an array or a list as a tensor on a device, without waiting for pending GPU work."""
    return torch.as_tensor(values, dtype=dtype).to(device, non_blocking=True)


def memory_of(device: torch.device) -> int:
    """Return the total memory of a device in bytes."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error is a failed allocation of torch, CUDA or Python."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or any(message in str(error) for message in _NO_MEMORY)


def process_in_parts(
    whole: Work, process: Callable[[Work], Result], split: Callable[[Work], Sequence[Work]]
) -> list[Result]:
    """Return the result for the whole work or, if the memory does not suffice, the results for its parts.

    Args:
        whole: the work.
        process: function that returns the result for some work.
        split: function that divides work into smaller parts. It raises `InputError` if this is not possible.
    """
    try:
        return [process(whole)]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    # Not in the `except` block, where the traceback of the error keeps the tensors of the failed attempt.
    return [result for part in split(whole) for result in process_in_parts(part, process, split)]


@contextlib.contextmanager
def within_memory(advice: str) -> Iterator[None]:
    """Turn a failed allocation within the block into an `InputError` with this advice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(f"out of memory. {advice}") from None


def multiplies_bfloat16(device: torch.device) -> bool:
    """Return whether a device has bfloat16 products: GPUs of compute capability 8 or more, and some x86 processors.

    Return False for a CPU whose support torch cannot detect (no `torch.cpu.get_capabilities`).
    """
    if device.type == "cuda":
        supported: bool = torch.cuda.is_bf16_supported(including_emulation=False)
        return supported
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next tensor instead of requesting new pages, which must be cleared.

    Batches of other shapes reuse part of it. In a training, the peak memory grew by 4 %.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt:
            mallopt(_MMAP_MAX, 0)
            mallopt(_TRIM_THRESHOLD, 2**31 - 1)
