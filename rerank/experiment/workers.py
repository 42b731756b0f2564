"""Work in processes of its own, several at a time: trainings and scorings that do not need each other."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Protocol, cast

from features.progress import log, name_task, show_progress, shows_progress
from moses_io.files.errors import InputError, reason_of

GPUS = Path("/proc/driver/nvidia/gpus")
PATIENCE = 30.0
"""Seconds that a process has to end by itself before it is killed."""

MOST_TOLD = 10_000
"""Letters of a reason that a process gives; a pipe that no one reads yet holds as many."""

_SAFE_PATH = "PYTHONSAFEPATH"
"""Has Python look for no module in the working folder, where a new process would find a `signal.py` of the user."""

Action = Callable[[], object]
"""Something to do that can be pickled."""


class Pool(Protocol):
    """Processes that do things beside each other; those still at work when its block ends are stopped.

    Attributes:
        jobs: how many of them there are at a time, at most.
    """

    jobs: int

    def __enter__(self) -> "Pool":
        """Begin the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        """End it."""

    @property
    def free(self) -> bool:
        """Whether one more may start."""

    def start(self, name: str, action: Action) -> None:
        """Do something in a process of its own, whose lines on stderr begin with the name."""

    def wait(self) -> str:
        """Wait until one has ended, and return its name.

        Raises:
            InputError: its input was at fault, or it was killed.
        """


class Workers:
    """Up to `jobs` processes at a time.

    Process n has the n-th GPU for itself, counted round where there are fewer GPUs than jobs, and its share of the
    cores. Those that are still at work when the block ends are stopped.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self._slots = jobs, list(range(jobs))
        self._running: dict[
            int, tuple[str, int, SpawnProcess, Connection]
        ] = {}  # by sentinel; the last says why it failed

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        processes = [process for _, _, process, _ in self._running.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(PATIENCE)
            process.kill()

    @property
    def free(self) -> bool:
        """Whether one more may start."""
        return bool(self._slots)

    def start(self, name: str, action: Action) -> None:
        """Do something in a process of its own, whose lines on stderr begin with the name."""
        context = multiprocessing.get_context("spawn")
        slot = self._slots.pop(0)
        ours, theirs = context.Pipe(duplex=False)
        told = (theirs, _SAFE_PATH in os.environ, shows_progress())
        process = context.Process(target=_work, args=(name, action, *told))
        with _environment({_SAFE_PATH: "1"} | _share(slot, self.jobs)):
            process.start()
        theirs.close()
        self._running[process.sentinel] = (name, slot, process, ours)

    def wait(self) -> str:
        """Wait until one has ended, and return its name.

        Raises:
            InputError: its input was at fault, or it was killed.
        """
        some = [self._running[cast(int, sentinel)] for sentinel in wait(list(self._running))]
        for _, _, process, _ in some:
            process.join()
        name, slot, process, reason = min(some, key=lambda each: each[2].exitcode != 0)
        del self._running[process.sentinel]
        self._slots = sorted([*self._slots, slot])
        if process.exitcode == 0:
            return name
        try:
            fault = reason.recv()
        except EOFError:
            fault = f"ended with status {process.exitcode}"
        raise InputError(f"{name}: {fault}")


def workers(jobs: int, address: str = "") -> Pool:
    """Return up to `jobs` processes, of this machine, or of the Ray cluster of an address where there is one.

    Raises:
        InputError: no such cluster, or the package ray is missing.
    """
    if not address:
        return Workers(jobs)
    from rerank.cluster.tasks import RayWorkers

    return RayWorkers(jobs, address)


def jobs_for(models: int, device: str, address: str = "") -> int:
    """Return how many of some models are trained at a time: one on each GPU, or else one on each core.

    Those of a cluster are not known here, which does as many of them at a time as it has cores for.
    """
    if address:
        return max(1, models)
    return max(1, min(models, len(_gpus()) if device != "cpu" and _gpus() else _cores()))


def do_all(actions: Mapping[str, Action], jobs: int, address: str = "") -> None:
    """Do all, one after the other, or `jobs` at a time in processes of their own, all of them where an address is."""
    if jobs == 1 and not address:
        for name, action in actions.items():
            if len(actions) > 1:
                log.info(name)
            action()
        return
    with workers(min(jobs, len(actions)), address) as pool:
        for name, action in actions.items():
            if not pool.free:
                pool.wait()
            pool.start(name, action)
        for _ in range(min(pool.jobs, len(actions))):
            pool.wait()


def _work(name: str, action: Action, reason: Connection, safe_path: bool, shown: bool) -> None:
    """Do something, and send the reason if it goes wrong; end with the parent."""
    if not safe_path:
        del os.environ[_SAFE_PATH]  # programs that this process starts are as they always are
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    show_progress(shown)
    name_task(name)
    try:
        action()
    except (InputError, OSError, MemoryError) as error:
        reason.send(reason_of(error)[:MOST_TOLD])
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _share(slot: int, jobs: int) -> dict[str, str]:
    """Return the variables that give process `slot` of `jobs` its share of the machine."""
    share = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, _cores() // jobs))}
    if gpus := _gpus():
        share["CUDA_VISIBLE_DEVICES"] = gpus[slot % len(gpus)]
    return share


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _gpus() -> list[str]:
    """Return the names of the GPUs that may be used."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return [str(number) for number, _ in enumerate(GPUS.glob("*"))]
    return list(takewhile(lambda name: name != "-1", named.split(","))) if named else []


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have variables set while the block runs, for a process that starts there."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
        os.environ.update(before)
