"""What a person reads: results on stdout; on stderr a bar of progress where one watches, plain lines elsewhere.

Commands tell of their progress; other programs that use the packages hear nothing but Python's own warnings, unless
they say `show_progress()`.
"""

import os
import sys
import time
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from moses_io.errors import printable
from moses_io.streams import STANDARD, open_output
from moses_io.text import encode

if TYPE_CHECKING:
    from rich.progress import Progress

PAUSE = 30.0
"""Seconds between two lines of progress where stderr is not a terminal."""

Item = TypeVar("Item")

_shown = False
_speaker = ""
_silent = False
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


@contextmanager
def silenced() -> Iterator[None]:
    """Tell nothing while the block runs, not even warnings: another process tells of the same work."""
    global _silent
    before, _silent = _silent, True
    try:
        yield
    finally:
        _silent = before


class Bar:
    """A bar that counts `total` units and shows a few words beside them."""

    def __init__(self, progress: "Progress", description: str, total: int | None, done: int) -> None:
        self.progress, self._description, self._total = progress, description, total
        count, drawn = self._count(done), printable(description)
        self._task = progress.add_task(drawn, total=total, completed=done, count=count, note="")
        self._done = done
        self._last_line = time.monotonic()

    def advance(self, units: int, status: str) -> None:
        """Count `units` more and show a few words."""
        self._done += units
        now = time.monotonic()
        self.progress.update(self._task, advance=units, count=self._count(self._done))
        self.say(status)
        if self.progress.disable and now - self._last_line > PAUSE:
            self._last_line = now
            what = "" if _speaker else f"{self._description}: "
            of_total = "" if self._total is None else f" of {self._total}"
            note(f"{what}{self._done}{of_total} {status}".rstrip())

    def say(self, words: str) -> None:
        """Show a few words, where it is drawn."""
        self.progress.update(self._task, note=printable(words))

    def hide(self) -> None:
        """Draw it no longer."""
        self.progress.update(self._task, visible=False)

    def _count(self, done: int) -> str:
        return f"{done}/{self._total}" if self._total is not None else str(done or "")


@contextmanager
def progress_bar(description: str, total: int | None, done: int = 0) -> Iterator[Bar]:
    """Show a bar, of which some units are `done`, while the block runs; below those that are open already.

    Where stderr is not a terminal it is a line now and then.
    """
    with nullcontext(_open[-1].progress) if _open else _progress() as progress:
        bar = Bar(progress, description, total, done)
        _open.append(bar)
        try:
            yield bar
        finally:
            _open.remove(bar)
            bar.hide()


def _progress() -> "Progress":
    """Return what draws a bar, and those that are opened before it is closed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    texts = ("{task.description}", "{task.fields[count]}", "{task.fields[note]}")
    name, count, beside = (TextColumn(text, markup=False) for text in texts)
    columns = (name, BarColumn(), count, TimeRemainingColumn(), beside)
    no_bar = _silent or bool(_speaker) or not (_shown and console.is_terminal)
    return Progress(*columns, console=console, transient=True, disable=no_bar)


def with_bar(description: str, items: Iterable[Item], total: int | None = None) -> Iterator[Item]:
    """Yield the items, of which there are `total`, with a bar that counts them."""
    with progress_bar(description, total) as bar:
        for item in items:
            yield item
            bar.advance(1, "")


def tell(status: str) -> None:
    """Show a few words beside the bar, if one is open: how far work within one of its units is."""
    if _open:
        _open[-1].advance(0, f"({status})")


def note(message: str) -> None:
    """Tell a person something on stderr, where progress is shown."""
    if _shown and not _silent:
        say(f"{_speaker}{message}")


def say(line: str) -> None:
    """Print a line on stderr; where that cannot be written (a full disk) nothing more is told, and work goes on."""
    try:
        print(printable(line), file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def warn(message: str) -> None:
    """Tell of something that may be wrong: a line where progress is shown, elsewhere a warning of Python."""
    if _shown:
        note(f"warning: {message}")
    elif not _silent:
        warnings.warn(printable(message), stacklevel=2)


def show(lines: Iterable[str]) -> None:
    """Print results for a person on stdout; nothing of what was read steers the terminal."""
    with open_output(STANDARD) as stream:
        stream.writelines(encode(f"{printable(line)}\n") for line in lines)


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Return the lines of a table, two spaces between its columns: those numbered `left` start at one place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def speak_as(name: str) -> None:
    """Put a name before all lines of this process from now on, and draw no bars: others tell of their work, too."""
    global _speaker
    _speaker = f"{name}: "
