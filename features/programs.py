"""Programs that score candidates: they read lines on stdin and print lines on stdout."""

import os
import selectors
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import IO

from features.processes import killed_with_parent
from features.progress import log
from moses_io.files.errors import Fault, counted, shown

MAX_OUTPUT_LINE_BYTES = 1 << 16
"""Maximum bytes of an output line."""

SILENCE_TIMEOUT = 60.0
"""Seconds without output after which a warning is logged."""

TIMEOUT = 10.0
"""Timeout in seconds: for a program to end after it closed its output, or for its output to close after it ended."""


def ask(command: str, text: bytes, lines: int, folder: str = "") -> bytes:
    """Run a shell command in a folder, write a text to its stdin and return its output.

    The program need not read the whole text. It and its process group are killed when this function returns or raises.

    Raises:
        Fault: the program fails, prints more than `lines` lines or a line of more than `MAX_OUTPUT_LINE_BYTES` bytes,
            or does not end after it closed its output.
    """
    program = _started(command, folder)
    assert program.stdin and program.stdout
    try:
        with killed_with_parent(program):
            with program.stdin, program.stdout:
                printed = _exchange(program, text, lines, to_end=True)
            status = program.wait(TIMEOUT)  # stdin is closed: a program that reads it can end
    except subprocess.TimeoutExpired:
        raise Fault("closed its output, but does not end") from None
    if status:
        raise Fault(f"exit status {status}")
    return printed


class RunningProgram:
    """A program that keeps running between calls of `ask`. It is started by the first call.

    Threads that ask at the same time wait for each other. The program is killed when this object is deleted, or when
    this process ends. A process that was forked from this one starts a program of its own.

    Args:
        command: words of the command, or a text for the shell.
        folder: working folder of the program, or empty for that of this process.
        quiet: whether to hide stderr. If the program fails, its last line is part of the message.
        name: of the program in a warning that is logged once if it prints nothing for `SILENCE_TIMEOUT` seconds, or
            empty for no warning.
    """

    def __init__(self, command: str | Sequence[str], folder: str = "", quiet: bool = False, name: str = "") -> None:
        self._command, self._folder, self._quiet, self._name = command, folder, quiet, name
        self._program: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._process = 0  # id of the process that started the program
        # By process: another thread may hold the lock when this process forks.
        self._locks: dict[int, threading.Lock] = {}

    def ask(self, text: bytes, lines: int) -> list[str]:
        """Write a text and return the lines that the program prints, of which it must print `lines`.

        Raises:
            Fault: the program cannot be started, ends, or prints more lines or a line of more than
                `MAX_OUTPUT_LINE_BYTES` bytes.
        """
        if not lines:
            return []
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            return self._ask(text, lines)

    def _ask(self, text: bytes, lines: int) -> list[str]:
        started = self._program is not None and self._process == os.getpid()
        if not started:
            self._start()
        assert self._program is not None
        try:
            surplus = _available_output(self._program) if started else None
            if surplus:
                raise Fault("more lines than candidates")
            if surplus is not None:
                raise Fault(self._ended(self._program, 0, lines))
            printed = _exchange(self._program, text, lines, to_end=False, on_silence=self._warn_of_silence)
            if printed.count(b"\n") < lines:
                raise Fault(self._ended(self._program, printed.count(b"\n"), lines))
        except BaseException:
            # Otherwise its next lines would be read as output for the next text.
            self._closing()
            self._program = None
            raise
        return printed.decode(errors="replace").removesuffix("\n").split("\n")

    def _warn_of_silence(self) -> None:
        if self._name:
            flush = "The program must flush its output after the candidates of each sentence"
            log.warning(f"{self._name}: no output for {SILENCE_TIMEOUT:.0f} s. {flush}")
            self._name = ""

    def _start(self) -> None:
        self._program = None  # that of the process from which this one was forked
        with ExitStack() as stack:
            if self._quiet:
                self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._program = _started(self._command, self._folder, self._errors)
            stack.enter_context(killed_with_parent(self._program))
            for stream in filter(None, (self._program.stdin, self._program.stdout)):
                stack.enter_context(stream)
            self._process = os.getpid()
            self._closing = weakref.finalize(self, _close, stack.pop_all(), self._process)

    def _ended(self, program: "subprocess.Popen[bytes]", printed: int, lines: int) -> str:
        """Return a message about a program that closed its output too early."""
        try:
            status = f"exit status {program.wait(TIMEOUT)}"
        except subprocess.TimeoutExpired:
            status = "closed its output"
        message = f"{status} after {counted(printed, 'line')} for {counted(lines, 'candidate')}"
        if self._errors is None:
            return message
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"{message} ({shown(last)})" if last else message


def _close(stack: ExitStack, process: int) -> None:
    """Kill a program, unless it belongs to the process that this one was forked from."""
    if os.getpid() == process:
        stack.close()


def _started(command: str | Sequence[str], folder: str, errors: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    try:
        program = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder or None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise Fault(f"cannot be started ({error.strerror})") from None
    assert program.stdin
    # Reading and writing alternate: with blocking writes, both sides could wait for each other on full pipes.
    os.set_blocking(program.stdin.fileno(), False)
    return program


def _exchange(
    program: "subprocess.Popen[bytes]",
    text: bytes,
    lines: int,
    to_end: bool,
    on_silence: Callable[[], None] = lambda: None,
) -> bytes:
    """Write the text and read the output, each as soon as the program is ready.

    Args:
        program: the program.
        text: its input.
        lines: maximum number of lines of its output.
        to_end: whether to close its input after the text and read until the output ends. Otherwise read until the
            output has all lines, or ends.
        on_silence: called when nothing was printed for `SILENCE_TIMEOUT` seconds.
    """
    stdin, stdout = program.stdin, program.stdout
    assert stdin and stdout
    printed, count, unread = bytearray(), 0, memoryview(text)
    last_output = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while to_end or count < lines or unread:
            ended = program.poll() is not None
            ready = [key.fileobj for key, _ in selector.select(TIMEOUT)]
            if ended and not ready:
                raise Fault("ended, but left a process that keeps its output open")
            if time.monotonic() - last_output > SILENCE_TIMEOUT:
                on_silence()
            if stdin in ready:
                unread = _write(stdin, unread)
                if not unread:
                    selector.unregister(stdin)
                    if to_end:
                        stdin.close()
            if stdout in ready:
                block = os.read(stdout.fileno(), MAX_OUTPUT_LINE_BYTES)
                if not block:
                    break
                printed += block
                last_output = time.monotonic()
                count += block.count(b"\n")
                if count > lines:
                    raise Fault(f"more than {counted(lines, 'line')} for {counted(lines, 'candidate')}")
                if len(printed) - printed.rfind(b"\n") > MAX_OUTPUT_LINE_BYTES:
                    raise Fault(f"line {count + 1} has more than {MAX_OUTPUT_LINE_BYTES} bytes")
    return bytes(printed)


def _available_output(program: "subprocess.Popen[bytes]") -> bytes | None:
    """Return the output that was not read: None if there is none, empty if the program has closed its output."""
    with selectors.DefaultSelector() as selector:
        assert program.stdout
        selector.register(program.stdout, selectors.EVENT_READ)
        return os.read(program.stdout.fileno(), MAX_OUTPUT_LINE_BYTES) if selector.select(0) else None


def _write(stdin: IO[bytes], text: memoryview) -> memoryview:
    """Write as much as the program accepts and return the rest, which is empty if it closed its stdin."""
    try:
        return text[os.write(stdin.fileno(), text[:MAX_OUTPUT_LINE_BYTES]) :]
    except BlockingIOError:
        return text
    except BrokenPipeError:
        return text[:0]
