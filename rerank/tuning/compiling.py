"""What a person sees while functions of tuners are compiled, which takes half a minute when they are first called."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from features.progress import tell


class _Teller(event.Listener):
    """Counts what is being compiled: functions have others compiled that they call."""

    _under_way = 0

    def on_start(self, event: Any) -> None:
        """Tell that something is being compiled."""
        self._under_way += 1
        tell("compiling")

    def on_end(self, event: Any) -> None:
        """Tell when all is."""
        self._under_way -= 1
        if not self._under_way:
            tell("compiled")


@contextmanager
def compiling_told() -> Iterator[None]:
    """Tell beside the open bar when something is compiled that was not found among what was compiled before."""
    with event.install_listener("numba:compile", _Teller()):
        yield
