"""Work in processes of a Ray cluster, several at a time: trainings and scorings that do not need each other."""

import math
import signal
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from moses_io.files.errors import InputError, reason_of
from rerank.cluster.connection import DEATHS, Connection, Workplace, value_of

PATIENCE = 30.0
"""Seconds that work has to end by itself before its process is killed."""


class RayWorkers:
    """A `Pool` of `jobs` processes of a cluster at most, as far as its machines have cores.

    Each has its threads, and its share of a GPU where there are some. Work whose process dies is begun again. What is
    still at work when the block ends is stopped.

    Raises:
        InputError: there is no such cluster.
    """

    def __init__(self, jobs: int, address: str) -> None:
        self._cluster = Connection(address)
        self.jobs = min(jobs, self._cluster.workers)
        self._running: dict[Any, str] = {}
        threads, gpus = self._cluster.workplace.threads, self._cluster.gpus
        share = 1 / math.ceil(self.jobs / gpus) if gpus else 0
        fresh = ray.remote(num_cpus=threads, num_gpus=share, max_retries=DEATHS, max_calls=1)  # a process for each
        self._perform = fresh(_perform)

    def __enter__(self) -> "RayWorkers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._running:
                for result in self._running:
                    ray.cancel(result)
                ray.wait(list(self._running), num_returns=len(self._running), timeout=PATIENCE)
        finally:
            self._cluster.close()

    @property
    def free(self) -> bool:
        """Whether one more may start."""
        return len(self._running) < self.jobs

    def start(self, name: str, action: Callable[[], object]) -> None:
        """Do something in a process of its own, whose lines on stderr begin with the name."""
        self._running[self._perform.remote(self._cluster.workplace, name, action)] = name

    def wait(self) -> str:
        """Wait until one has ended, and return its name.

        Raises:
            InputError: its input was at fault, or its process died again and again.
        """
        ended = {result: _fault(result) for result in self._cluster.wait(list(self._running))}
        first = min(ended, key=lambda result: ended[result] != "")
        name = self._running.pop(first)
        if ended[first]:
            raise InputError(f"{name}: {ended[first]}")
        return name


def _fault(result: Any) -> str:
    """Return what went wrong, in a line; empty if nothing did."""
    try:
        value_of(result)
    except (InputError, OSError, MemoryError) as error:
        return reason_of(error)
    except RayTaskError as error:
        traceback.print_exception(error)
        return f"ended with {type(error.cause).__name__}"
    except RayError as error:
        return f"its worker died {DEATHS + 1} times ({type(error).__name__})"
    return ""


def _perform(workplace: Workplace, name: str, action: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as which Ray stops work; shells let their jobs ignore it
    with workplace.entered(name):
        action()
