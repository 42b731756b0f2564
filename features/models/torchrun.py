"""Environment of processes that torchrun starts for one training.

Imports torch only when an error is reported.
"""

import os
from datetime import timedelta

STORE_TIMEOUT = timedelta(seconds=10)
"""Timeout of a failed process for torchrun's store."""


def is_one_of_several() -> bool:
    """Return whether torchrun started this process together with others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ["WORLD_SIZE"]) > 1


def prints_errors() -> bool:
    """Return whether this process prints the error message: a single process, or the first process that fails.

    The others fail for the same reason, or because this process has ended. If torchrun's store does not respond, the
    process of rank 0 prints the message.
    """
    if not is_one_of_several():
        return True
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    try:
        store = TCPStore(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=STORE_TIMEOUT
        )
        return bool(store.add(f"moses-rerank/failed/{os.environ['TORCHELASTIC_RESTART_COUNT']}", 1) == 1)
    except RuntimeError:
        return os.environ["RANK"] == "0"
