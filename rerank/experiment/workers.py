"""Pools of processes for training and scoring in parallel."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Protocol

from features.progress import Done, log, name_task, show_progress, shows_progress, watched
from moses_io.files.errors import InputError, reason_of

GPUS = Path("/proc/driver/nvidia/gpus")
"""Folder in which the NVIDIA driver has one entry per GPU."""

TERMINATION_TIMEOUT = 30.0
"""Seconds that a process has to end after SIGTERM before it is killed."""

MAX_MESSAGE_LENGTH = 10_000
"""Maximum characters of the error message that a process sends.

The buffer of a pipe is small and may already have reports of progress. A longer message could block the process.
"""

_SAFE_PATH = "PYTHONSAFEPATH"
"""Variable that keeps the working folder out of Python's module path.

Otherwise a new process would import a `signal.py` of the user from there.
"""

INTERVAL = 1.0
"""Minimum seconds between two reports of the progress of a process."""

Action = Callable[[], object]
"""A picklable function without arguments."""

ProgressCallback = Callable[[str, Done | None], object]
"""Function that is called with the name of an action that advances and its progress, None if it is not known."""


class Pool(Protocol):
    """A pool of processes. The end of its `with` block stops processes that are still running.

    Attributes:
        jobs: maximum number of processes at a time.
    """

    jobs: int

    def __enter__(self) -> "Pool":
        """Enter the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        """Stop processes that are still running."""

    @property
    def free(self) -> bool:
        """Whether another process may start."""

    def start(self, name: str, action: Action) -> None:
        """Run an action in a separate process. Its lines on stderr begin with `name`."""

    def wait(self) -> str:
        """Wait until an action has ended, and return its name.

        Raises:
            InputError: its input was at fault, or its process was killed.
        """


@dataclass
class _Running:
    """A running process: its name, slot, and the pipe on which it reports progress and its error message."""

    name: str
    slot: int
    process: SpawnProcess
    pipe: Connection
    fault: str = ""


class Workers:
    """A pool of up to `jobs` processes on this machine.

    Each process gets its share of the cores, and one GPU. Processes share GPUs if there are fewer GPUs than jobs. The
    end of the block stops processes that are still running. `on_progress` is called while an action advances.
    """

    def __init__(self, jobs: int, on_progress: ProgressCallback = lambda name, done: None) -> None:
        self.jobs, self._slots, self._on_progress = jobs, list(range(jobs)), on_progress
        self._running: dict[int, _Running] = {}  # by sentinel

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        processes = [each.process for each in self._running.values()]
        try:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(TERMINATION_TIMEOUT)
        finally:
            for process in processes:
                process.kill()

    @property
    def free(self) -> bool:
        """Whether another process may start."""
        return bool(self._slots)

    def start(self, name: str, action: Action) -> None:
        """Run an action in a separate process. Its lines on stderr begin with `name`."""
        context = multiprocessing.get_context("spawn")
        slot = self._slots.pop(0)
        receiver, sender = context.Pipe(duplex=False)
        state = (sender, _SAFE_PATH in os.environ, shows_progress())
        process = context.Process(target=_work, args=(name, action, *state))
        with _environment({_SAFE_PATH: "1"} | _share(slot, self.jobs)), _interrupts_deferred():
            process.start()
            sender.close()
            self._running[process.sentinel] = _Running(name, slot, process, receiver)

    def wait(self) -> str:
        """Wait until an action has ended, and return its name.

        Raises:
            InputError: its input was at fault, or its process was killed.
        """
        while not (ended := self._ended()):
            pass
        # Successes come first, so that their results are recorded before a failure stops the run.
        first = min(ended, key=lambda each: each.process.exitcode != 0)
        del self._running[first.process.sentinel]
        self._slots = sorted([*self._slots, first.slot])
        if first.process.exitcode == 0:
            return first.name
        raise InputError(f"{first.name}: {first.fault or _end_of(first.process.exitcode or 0)}")

    def _ended(self) -> list[_Running]:
        """Wait until a process has ended or reports something. Return the processes that have ended."""
        pipes = {each.pipe: each for each in self._running.values() if not each.pipe.closed}
        ready = wait([*self._running, *pipes])
        for pipe in pipes.keys() & ready:
            self._read(pipes[pipe])
        ended = [self._running[each] for each in ready if each in self._running]
        for each in ended:
            each.process.join()
            self._read(each)
        return ended

    def _read(self, running: _Running) -> None:
        """Read everything that a process has sent: its progress, and the error message. Close the pipe at its end."""
        try:
            while not running.pipe.closed and running.pipe.poll():
                message = running.pipe.recv()
                if isinstance(message, str):
                    running.fault = message
                else:
                    self._on_progress(running.name, message)
        except EOFError:
            running.pipe.close()


def workers(jobs: int, address: str = "", on_progress: ProgressCallback = lambda name, done: None) -> Pool:
    """Return a pool of up to `jobs` processes, on this machine or, with an address, on a Ray cluster.

    `on_progress` is called while an action on this machine advances.

    Raises:
        InputError: no such cluster, or the package ray is missing.
    """
    if not address:
        return Workers(jobs, on_progress)
    from rerank.cluster.tasks import RayWorkers

    return RayWorkers(jobs, address)


def _end_of(status: int) -> str:
    """Return a message for the exit status of a process without another message. Negative: number of a signal."""
    if status > 0:
        return f"ended with status {status}"
    return f"killed by signal {-status}, often for lack of memory. Use fewer --jobs"


def jobs_for(models: int, device: str, address: str = "") -> int:
    """Return how many of the models are trained at a time: one per GPU, or one per core if no GPU is used.

    For a cluster this is the number of models, because the pool limits it to the capacity of the cluster.
    """
    if address:
        return max(1, models)
    return max(1, min(models, len(_gpus()) if uses_gpu(device) else cores()))


def uses_gpu(device: str) -> bool:
    """Return whether models run on a GPU, given the device `auto`, `cpu` or `cuda`."""
    return device != "cpu" and bool(_gpus())


def do_all(actions: Mapping[str, Action], jobs: int, address: str = "") -> None:
    """Run all actions: one after the other in this process if `jobs` is 1, otherwise in a pool of processes.

    With the address of a Ray cluster, all actions run on the cluster.
    """
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


def _work(name: str, action: Action, pipe: Connection, safe_path: bool, shown: bool) -> None:
    """Run an action in a new process, and send its progress and, if it fails, the error message.

    The process ends when its parent ends. It does nothing on SIGINT, which a terminal also sends to the parent: the
    parent then stops this process by SIGTERM.
    """
    signal.signal(signal.SIGINT, lambda *_: None)  # unlike SIG_IGN, programs that this process starts do not inherit it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if not safe_path:
        del os.environ[_SAFE_PATH]  # programs that this process starts must not inherit it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    show_progress(shown)
    name_task(name)
    last = -INTERVAL

    def send(done: Done | None) -> None:
        nonlocal last
        if time.monotonic() - last >= INTERVAL:
            last = time.monotonic()
            with suppress(BrokenPipeError):  # the parent was killed, and this process will be
                pipe.send(done)

    try:
        with watched(send):
            action()
    except (InputError, OSError, MemoryError) as error:
        pipe.send(reason_of(error)[:MAX_MESSAGE_LENGTH])
        sys.exit(2)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _share(slot: int, jobs: int) -> dict[str, str]:
    """Return the environment variables that give process `slot` of `jobs` its cores and its GPU.

    `OMP_NUM_THREADS` of the user is a maximum: batch systems often set it to the cores of the whole job.
    """
    threads, limit = max(1, cores() // jobs), os.environ.get("OMP_NUM_THREADS", "")
    share = {"OMP_NUM_THREADS": str(min(threads, int(limit)) if limit.isdecimal() and int(limit) else threads)}
    if gpus := _gpus():
        share["CUDA_VISIBLE_DEVICES"] = gpus[slot % len(gpus)]
    return share


def cores() -> int:
    """Return the number of cores that this process may use, also in a container with a limit of CPU time."""
    from joblib import cpu_count  # slow to import

    return int(cpu_count())


def _gpus() -> list[str]:
    """Return the names of the visible GPUs."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return [str(number) for number, _ in enumerate(GPUS.glob("*"))]
    return list(takewhile(lambda name: name != "-1", named.split(","))) if named else []  # CUDA stops at -1


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer SIGINT to the end of the block, and block it in processes that start there until they unblock it.

    A process that is interrupted while it imports modules would print a traceback.
    """
    resource_tracker.ensure_running()  # otherwise it starts with the first process, and unblocks SIGINT
    handles = threading.current_thread() is threading.main_thread()
    interrupts: list[int] = []
    # Other threads of this process, which can get the signal, do not have the mask.
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number)) if handles else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which processes inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handles:
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the block runs, for a process that starts there."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
        os.environ.update(before)
