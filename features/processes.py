"""Child processes that do not outlive this process."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

_WATCH = 'read -r line; kill -KILL -"$1"'
"""A shell that reads its stdin until this process ends, for whatever reason, then kills the group $1."""


@contextlib.contextmanager
def killed_with_parent(program: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill the process group of a program when the block ends, or when this process does, also by SIGTERM or SIGKILL.

    The program must have been started with `start_new_session`.
    """
    words = ["/bin/sh", "-c", _WATCH, "sh", str(program.pid)]
    try:
        watcher = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            yield
        finally:
            watcher.kill()
            watcher.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
