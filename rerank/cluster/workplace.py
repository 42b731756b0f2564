"""What a worker takes over from the command that it works for, and what it tells it."""

import contextlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ray

from features.progress import show_progress, speak_as
from moses_io.errors import InputError

THREADS = "OMP_NUM_THREADS"


class WorkerLines:
    """Lines of workers that nobody has read yet."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Add one."""
        self._lines.append(line)

    def take(self) -> list[str]:
        """Return and forget them."""
        lines, self._lines = self._lines, []
        return lines


@dataclass(frozen=True)
class Workplace:
    """What a worker has from its command.

    Attributes:
        folder: the working folder, to which paths are relative.
        threads: those of a worker.
        shown: whether progress is shown.
        lines: the actor of `WorkerLines` that takes what the worker writes to stderr.
    """

    folder: str
    threads: int
    shown: bool
    lines: Any

    @contextlib.contextmanager
    def entered(self, name: str = "") -> Iterator[None]:
        """Be there while the block runs; lines on stderr begin with the name, if there is one.

        Raises:
            InputError: this machine does not have the folder.
        """
        os.environ[THREADS] = str(self.threads)  # before torch comes in
        try:
            os.chdir(self.folder)
        except OSError as error:
            shared = "machines of a cluster need a file system that they share"
            raise InputError(f"{os.uname().nodename}: {self.folder}: {error.strerror}; {shared}") from None
        show_progress(self.shown)
        if name:
            speak_as(name)
        with contextlib.redirect_stderr(_Sender(self.lines)):
            yield


class _Sender(io.TextIOBase):
    """A stream that sends whole lines; they have come when `write` returns."""

    def __init__(self, lines: Any) -> None:
        self._lines, self._begun = lines, ""

    def write(self, text: str) -> int:
        """Take some text."""
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            ray.get(self._lines.add.remote(line))
        return len(text)
