"""Status of progress bars while numba compiles functions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from features.progress import show_status


class _CompilationListener(event.Listener):
    """Listener that shows a status while numba compiles.

    It counts nested events, because the compilation of a function compiles the functions that it calls.
    """

    _compiling = 0

    def on_start(self, event: Any) -> None:
        self._compiling += 1
        show_status("compiling")

    def on_end(self, event: Any) -> None:
        self._compiling -= 1
        if not self._compiling:
            show_status("compiled")


@contextmanager
def compilation_shown() -> Iterator[None]:
    """Show a status next to the open progress bar while numba compiles functions that are not in its cache."""
    with event.install_listener("numba:compile", _CompilationListener()):
        yield
