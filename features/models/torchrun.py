"""What torchrun, which starts one training in several processes, has told this one; without torch, but for faults."""

import os
from datetime import timedelta

ANSWER = timedelta(seconds=10)
"""How long a process that has failed waits for torchrun's store."""


def is_one_of_several() -> bool:
    """Tell whether torchrun started this process with others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ["WORLD_SIZE"]) > 1


def is_to_tell() -> bool:
    """Tell whether this process is the one that says what went wrong: alone, or the first of all that comes to it.

    The others fail for the same reason, or since this one has ended. Where torchrun no longer answers, it is the
    process of rank 0.
    """
    if not is_one_of_several():
        return True
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    try:
        store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=ANSWER)
        return bool(store.add(f"moses-rerank/failed/{os.environ['TORCHELASTIC_RESTART_COUNT']}", 1) == 1)
    except RuntimeError:
        return os.environ["RANK"] == "0"
