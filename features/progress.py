"""What a person reads: results on stdout; on stderr a bar of progress where one watches, plain lines elsewhere.

Commands tell of their progress; other programs that use the packages hear nothing but Python's own warnings, unless
they say `show_progress()`.
"""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moses_io.errors import printable
from moses_io.streams import STANDARD, open_output
from moses_io.text import encode

if TYPE_CHECKING:
    from rich.progress import Progress

PAUSE = 30.0
"""Seconds between two lines of progress where stderr is not a terminal."""

_shown = False
_speaker = ""
_open: list["Bar"] = []


def show_progress(on: bool = True) -> None:
    """Tell on stderr what is being done, or no longer; until this is called, only commands do."""
    global _shown
    _shown = on


def shows_progress() -> bool:
    """Tell whether this process tells what is being done."""
    return _shown


@contextmanager
def progress_shown() -> Iterator[None]:
    """Tell what is being done while the block runs."""
    before = _shown
    show_progress()
    try:
        yield
    finally:
        show_progress(before)


class Bar:
    """A bar that counts `total` units and shows a few words beside them."""

    def __init__(self, progress: "Progress", description: str, total: int | None) -> None:
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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    beside = TextColumn("{task.fields[note]}")
    no_bar = bool(_speaker) or not (_shown and console.is_terminal)
    with Progress(*columns, beside, console=console, transient=True, disable=no_bar) as progress:
        bar = Bar(progress, description, total)
        _open.append(bar)
        try:
            yield bar
        finally:
            _open.remove(bar)


def tell(status: str) -> None:
    """Show a few words beside the bar, if one is open: how far work within one of its units is."""
    if _open:
        _open[-1].advance(0, f"({status})")


def note(message: str) -> None:
    """Tell a person something on stderr, where progress is shown."""
    if _shown:
        print(printable(f"{_speaker}{message}"), file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Tell of something that may be wrong: a line where progress is shown, elsewhere a warning of Python."""
    if _shown:
        note(f"warning: {message}")
    else:
        warnings.warn(printable(message), stacklevel=2)


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
