"""A program that answers lines with lines, as long as it keeps to that."""

import os
import selectors
import subprocess
from typing import IO

from features.processes import killed_with_parent
from moses_io.errors import Fault

LONGEST = 1 << 16
"""Bytes of a line that is printed, at most."""

PATIENCE = 10.0
"""Seconds that a program has to end when its output is closed, or to close it when the program has ended."""


def ask(command: str, text: bytes, lines: int, folder: str = "") -> bytes:
    """Start a program by the shell in a folder, and return what it prints for a text; it need not read all of it.

    The program and its process group are killed when this function returns or raises.

    Raises:
        Fault: it fails, prints more than so many lines or one without end, or does not end with its output.
    """
    program = subprocess.Popen(
        command,
        shell=True,
        cwd=folder or None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    assert program.stdin and program.stdout
    try:
        with killed_with_parent(program):
            with program.stdin, program.stdout:
                printed = _talk(program, program.stdin, program.stdout, text, lines)
            status = program.wait(PATIENCE)  # with stdin closed: the program may still read it
    except subprocess.TimeoutExpired:
        raise Fault("closed its output, but does not end") from None
    if status:
        raise Fault(f"exit status {status}")
    return printed


def _talk(program: "subprocess.Popen[bytes]", stdin: IO[bytes], stdout: IO[bytes], text: bytes, lines: int) -> bytes:
    """Write the text and read what is printed, each when the program is ready for it, until its output ends."""
    printed, count, unread = bytearray(), 0, memoryview(text)
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select(PATIENCE)]
            if not ready and program.poll() is not None:
                raise Fault("ended, but left a process that keeps its output open")
            if stdin in ready:
                unread = _write(stdin, unread)
                if not unread:
                    selector.unregister(stdin)
                    stdin.close()
            if stdout in ready:
                block = os.read(stdout.fileno(), LONGEST)
                if not block:
                    return bytes(printed)
                printed += block
                count += block.count(b"\n")
                if count > lines:
                    raise Fault(f"more than {lines} lines for {lines} candidates")
                if len(printed) - printed.rfind(b"\n") > LONGEST:
                    raise Fault(f"line {count + 1} has more than {LONGEST} bytes")


def _write(stdin: IO[bytes], text: memoryview) -> memoryview:
    """Write as much as the program takes, and return the rest; nothing, if it takes no more."""
    try:
        return text[os.write(stdin.fileno(), text[:LONGEST]) :]
    except BlockingIOError:
        return text
    except BrokenPipeError:
        return text[:0]
