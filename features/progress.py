"""What a person reads: results on stdout; on stderr a bar of progress where one watches, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from moses_io.errors import printable
from moses_io.streams import STANDARD, open_output
from moses_io.text import encode

PAUSE = 30.0
"""Seconds between two lines of progress where stderr is not a terminal."""

_speaker = ""
_open: list["Bar"] = []


class Bar:
    """A bar that counts `total` units and shows a few words beside them."""

    def __init__(self, progress: Progress, description: str, total: int | None) -> None:
        self._progress, self._description, self._total = progress, description, total
        self._task = progress.add_task(description, total=total, note="")
        self._done, self._last_line = 0, time.monotonic()

    def advance(self, units: int, status: str) -> None:
        """Count `units` more and show a few words."""
        self._done += units
        self._progress.update(self._task, advance=units, note=status)
        if self._progress.disable and time.monotonic() - self._last_line > PAUSE:
            self._last_line = time.monotonic()
            what = "" if _speaker else f"{self._description}: "
            note(f"{what}{self._done}{_of(self._total)} {status}".rstrip())


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Bar]:
    """Show a bar while the block runs, or a line now and then where stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    beside = TextColumn("{task.fields[note]}")
    lines = bool(_speaker) or not console.is_terminal
    with Progress(*columns, beside, console=console, transient=True, disable=lines) as progress:
        _open.append(Bar(progress, description, total))
        try:
            yield _open[-1]
        finally:
            _open.pop()


def tell(status: str) -> None:
    """Show a few words beside the bar, if one is open: how far work within one of its units is."""
    if _open:
        _open[-1].advance(0, f"({status})")


def note(message: str) -> None:
    """Tell a person something on stderr."""
    print(printable(f"{_speaker}{message}"), file=sys.stderr, flush=True)


def show(lines: Iterable[str]) -> None:
    """Print results for a person on stdout; nothing of what was read steers the terminal."""
    with open_output(STANDARD) as stream:
        stream.writelines(encode(f"{printable(line)}\n") for line in lines)


def speak_as(name: str) -> None:
    """Put a name before all lines of this process from now on, and draw no bars: others tell of their work, too."""
    global _speaker
    _speaker = f"{name}: "


def _of(total: int | None) -> str:
    return "" if total is None else f" of {total}"
