"""Trainings and scorings that do not depend on each other, several at a time in processes of a Ray cluster."""

import math
import signal
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from moses_io.files.errors import InputError, reason_of
from rerank.cluster.connection import MAX_RESTARTS, Connection, WorkerSettings, value_of

TERMINATION_TIMEOUT = 30.0
"""Seconds that cancelled work has to end before its process is killed."""


class RayWorkers:
    """A `Pool` of at most `jobs` processes of a cluster, limited by the cores of its machines.

    Each process has its own threads and, if the cluster has GPUs, a fraction of a GPU. Work whose process dies is
    restarted. Work that is still running when the block ends is stopped.

    Attributes:
        jobs: maximum number of processes at a time.

    Raises:
        InputError: there is no such cluster.
    """

    def __init__(self, jobs: int, address: str) -> None:
        self._cluster = Connection(address)
        self.jobs = min(jobs, self._cluster.workers)
        self._running: dict[Any, str] = {}
        self._faults: dict[Any, str] = {}  # of the actions that have ended and that `wait` has not returned
        threads, gpus = self._cluster.worker_settings.threads, self._cluster.gpus
        gpu_fraction = 1 / math.ceil(self.jobs / gpus) if gpus else 0
        # With `max_calls` 1 each action has a new process.
        remote = ray.remote(num_cpus=threads, num_gpus=gpu_fraction, max_retries=MAX_RESTARTS, max_calls=1)
        self._perform = remote(_perform)

    def __enter__(self) -> "RayWorkers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._running:
                for result in self._running:
                    ray.cancel(result)
                ray.wait(list(self._running), num_returns=len(self._running), timeout=TERMINATION_TIMEOUT)
        finally:
            self._cluster.close()

    @property
    def free(self) -> bool:
        """Whether another process may start."""
        return len(self._running) < self.jobs

    def start(self, name: str, action: Callable[[], object]) -> None:
        """Start an action in its own process. Its lines on stderr begin with the name."""
        self._running[self._perform.remote(self._cluster.worker_settings, name, action)] = name

    def wait(self) -> str:
        """Wait until an action has ended, and return its name. Of several, one that succeeded comes first.

        Raises:
            InputError: the action failed, or its process died more than `MAX_RESTARTS` times.
        """
        for result in self._cluster.wait(list(self._running)):
            if result not in self._faults:
                self._faults[result] = _fault(result)
        first = min(self._faults, key=lambda result: self._faults[result] != "")
        name, fault = self._running.pop(first), self._faults.pop(first)
        if fault:
            raise InputError(f"{name}: {fault}")
        return name


def _fault(result: Any) -> str:
    """Return a one-line description of the error, empty for a success."""
    try:
        value_of(result)
    except (InputError, OSError, MemoryError) as error:
        return reason_of(error)
    except RayTaskError as error:
        traceback.print_exception(error)
        return f"ended with {type(error.cause).__name__}"
    except RayError as error:
        return f"its worker died {MAX_RESTARTS + 1} times ({type(error).__name__})"
    return ""


def _perform(worker_settings: WorkerSettings, name: str, action: Callable[[], object]) -> None:
    # Ray cancels work by SIGINT, which background jobs of a shell ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with worker_settings.applied(name):
        action()
