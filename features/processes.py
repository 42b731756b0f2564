"""Child processes that end with this process."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

_WATCH = 'read -r line; kill -KILL -"$1"'
"""Shell script that kills process group $1 when its stdin closes.

Stdin closes when this process ends for any reason, including SIGKILL.
"""


@contextlib.contextmanager
def killed_with_parent(program: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill the process group of a program when the block ends, or when this process ends, even by SIGTERM or SIGKILL.

    The program must have been started with `start_new_session`.
    """
    process = os.getpid()
    words = ["/bin/sh", "-c", _WATCH, "sh", str(program.pid)]
    try:
        watcher = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            yield
        finally:
            # A process that was forked from this one must leave the program alone.
            if os.getpid() == process:
                watcher.kill()
                watcher.communicate()
    finally:
        if os.getpid() == process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
