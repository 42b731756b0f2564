"""Connection of a command to a Ray cluster: a running one, or a local one that ends with the command.

Also the settings that its workers copy from the command.
"""

import contextlib
import io
import logging
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import ray
from ray.exceptions import RayTaskError

from features.progress import name_task, show_progress, shows_progress
from moses_io.files.errors import InputError, shown

THREADS = "OMP_NUM_THREADS"
AUTO, LOCAL = "auto", "local"
OBJECT_STORE_BYTES = 100 * 2**20
"""Bytes of the object store of a cluster that we start. Only small parts of a list go through it."""

MAX_RESTARTS = 3
"""Maximum number of times that work is repeated because its worker died."""

CONNECT_TIMEOUT = 10.0
"""Seconds that a cluster has to accept a connection."""

POLL_INTERVAL = 0.5
"""Seconds between two checks for output of the workers."""


class Connection:
    """A connection to a cluster, and the resources that a command may use.

    Attributes:
        worker_settings: settings of this process that the workers copy.
        workers: number of workers that the machines have cores for.
        gpus: number of GPUs of all machines.

    Raises:
        InputError: there is no such cluster, or none of its machines has as many cores as a worker has threads.
    """

    def __init__(self, address: str) -> None:
        self._session, self._stdout = _connect(address), sys.stdout
        sys.stdout = cast("TextIO", _WithoutRay(sys.stdout))
        try:
            threads = _threads()
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            self.workers = sum(int(node.get("CPU", 0) // threads) for node in nodes)
            self.gpus = sum(int(node.get("GPU", 0)) for node in nodes)
            if not self.workers:
                expected = f"expected a machine with at least {threads} cores ({THREADS})"
                raise InputError(f"--ray: {expected}, the cluster has none")
            actor = ray.remote(WorkerLines).options(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            self._lines = actor.remote()
            self.worker_settings = WorkerSettings(os.getcwd(), threads, shows_progress(), self._lines)
        except BaseException:
            self.close()
            raise

    def wait(self, pending: list[Any]) -> list[Any]:
        """Wait until at least one of some results is ready, and return all that are ready.

        A result is also ready if its work failed. Lines that workers have written up to then are printed on stderr.
        """
        ended: list[Any] = []
        while not ended:
            ended, _ = ray.wait(pending, timeout=POLL_INTERVAL)
            for line in ray.get(self._lines.take.remote()):
                print(line, file=sys.stderr, flush=True)
        ended, _ = ray.wait(pending, num_returns=len(pending), timeout=0)
        return ended

    def close(self) -> None:
        """Disconnect, and stop the cluster if it was started for this process.

        Ray's last messages about dead workers are discarded.
        """
        with contextlib.redirect_stdout(io.StringIO()):
            ray.shutdown()
        sys.stdout = self._stdout
        if self._session:
            shutil.rmtree(self._session, ignore_errors=True)


class _WithoutRay:
    """Stdout that discards the output of Ray's own threads, because a command may write a list there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, except in a thread of Ray."""
        if threading.current_thread().name.startswith("ray_"):
            return len(text)
        return self._stream.write(text)


def value_of(result: Any) -> Any:
    """Return the value of a result that is ready.

    Raises:
        InputError, OSError, MemoryError: raised by the work itself.
        RayTaskError: another error of the work, with its traceback.
        RayError: the worker died.
    """
    try:
        return ray.get(result)
    except RayTaskError as error:
        if isinstance(error.cause, InputError | OSError | MemoryError):
            raise error.cause from None
        raise


def _connect(address: str) -> str:
    """Connect to a cluster. Return the log folder of a cluster that is started for us, empty for a running one."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "namespace": f"{time.time_ns()}"}
    running = _find(address)
    try:
        if running:
            ray.init(running, **quiet)
            return ""
        context = ray.init(LOCAL, object_store_memory=OBJECT_STORE_BYTES, include_dashboard=False, **quiet)
        return str(context.address_info["session_dir"])
    except Exception as error:  # Ray also raises plain exceptions
        raise InputError(f"--ray {shown(address)}: {(str(error) or type(error).__name__).splitlines()[0]}") from None


def _find(address: str) -> str:
    """Return the address of a running cluster, empty if a new one is to be started.

    Like in Ray itself, `RAY_ADDRESS` may also be `auto`, the cluster of this machine, or `local`, a new one.

    Raises:
        InputError: no cluster answers at the given address.
    """
    named, where = address, ""
    if address == AUTO:
        named, where = os.environ.get("RAY_ADDRESS", ""), ", which RAY_ADDRESS names"
        if named == LOCAL:
            return ""
        if named in ("", AUTO):
            return _running()
    if not _accepts_connection(named):
        raise InputError(
            f"--ray {shown(address)}: no cluster answers at {shown(named)}{where}. Expected HOST:PORT, or {AUTO}"
        )
    return named


def _running() -> str:
    """Return the address of the cluster that `ray start` started on this machine, empty if none is running."""
    try:
        path = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir()), "ray", "ray_current_cluster")
        address = path.read_text().strip()
    except OSError:
        return ""
    return address if _accepts_connection(address) else ""


def _accepts_connection(address: str) -> bool:
    """Return whether a connection to an address is accepted."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), CONNECT_TIMEOUT):
            return bool(host)
    except (OSError, ValueError, OverflowError):
        return False


def _threads() -> int:
    """Return the number of threads of a worker: `OMP_NUM_THREADS`, default 1."""
    text = os.environ.get(THREADS, "")
    return int(text) if text.isdecimal() and int(text) else 1


class WorkerLines:
    """Actor that collects lines of workers until the command takes them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Add a line."""
        self._lines.append(line)

    def take(self) -> list[str]:
        """Return all lines and remove them."""
        lines, self._lines = self._lines, []
        return lines


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that a worker gets from its command.

    Attributes:
        folder: working folder, to which paths are relative.
        threads: threads of a worker.
        shown: whether progress is shown.
        lines: the actor `WorkerLines` that gets the lines that the worker writes to stderr.
    """

    folder: str
    threads: int
    shown: bool
    lines: Any

    @contextlib.contextmanager
    def applied(self, name: str = "") -> Iterator[None]:
        """Apply the settings while the block runs. Lines on stderr begin with the name, if it is not empty.

        Raises:
            InputError: this machine does not have the folder.
        """
        os.environ[THREADS] = str(self.threads)  # torch reads it at its import
        try:
            os.chdir(self.folder)
        except OSError as error:
            shared = "All machines of a cluster need a shared file system"
            raise InputError(f"{os.uname().nodename}: {self.folder}: {error.strerror}. {shared}") from None
        show_progress(self.shown)
        if name:
            name_task(name)
        with contextlib.redirect_stderr(_Sender(self.lines)):
            yield


class _Sender(io.TextIOBase):
    """Stream that sends whole lines to the actor. `write` returns after they have arrived."""

    def __init__(self, lines: Any) -> None:
        self._lines, self._begun = lines, ""

    def write(self, text: str) -> int:
        """Send the lines that the text completes, and keep the rest."""
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            ray.get(self._lines.add.remote(line))
        return len(text)
