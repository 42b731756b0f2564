"""Where a model runs."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from features.arrays import Array, Integers
from features.feature import check_device
from moses_io.files.errors import InputError

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h


# One thread after a fork: OpenMP would wait forever for the threads of the parent.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def check_process(device: torch.device, process: int) -> None:
    """Raise `InputError` if models on a GPU were opened in another process, whose id is given, before a fork."""
    if device.type == "cuda" and process != os.getpid():
        advice = "use the start method 'spawn', and open the models in the new process"
        raise InputError(f"models on a GPU cannot be used in a forked process; {advice}")


def find_device(name: str) -> torch.device:
    """Return the device of that name; `auto` is the GPU where there is one.

    Raises:
        InputError: no such name, or no GPU.
    """
    check_device(name)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("--device cuda: torch sees no GPU here; use auto or cpu")
    if name != "cpu" and available:
        torch.backends.cudnn.allow_tf32 = False  # recurrent cells would round float32 to 10 bits
        return torch.device("cuda")
    _keep_freed_memory()
    return torch.device("cpu")


def on_device(
    values: Array | Integers | Sequence[object], device: torch.device, dtype: torch.dtype | None = None
) -> Tensor:
    """Return an array, or a list, as a tensor there, without waiting for what a GPU still has to do."""
    return torch.as_tensor(values, dtype=dtype).to(device, non_blocking=True)


def memory_of(device: torch.device) -> int:
    """Return the bytes of memory that a device has in all."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether torch, or Python, could not get memory."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def within_memory(advice: str) -> Iterator[None]:
    """Turn what says that the memory does not suffice into an `InputError` with this advice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(f"out of memory; {advice}") from None


def multiplies_bfloat16(device: torch.device) -> bool:
    """Tell whether to multiply in bfloat16 where that is asked for: on a GPU, and on x86 processors with such products.

    A torch without `torch.cpu.get_capabilities` cannot tell; its processor is taken for one without.
    """
    if device.type == "cuda":
        return True
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


def _keep_freed_memory() -> None:
    """Let glibc keep what is freed for the next tensor; otherwise each large one comes as new pages to be cleared.

    torch frees and takes tensors of the same sizes at every step, so this takes no more memory at the peak.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt:
            mallopt(_MMAP_MAX, 0)
            mallopt(_TRIM_THRESHOLD, 2**31 - 1)
