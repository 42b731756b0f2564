"""Messages and progress bars on stderr, results on stdout.

Messages go to the logger `moses_rerank`: progress at level INFO, possible mistakes at level WARNING. Commands print
both and, if stderr is a terminal, draw progress bars. Programs that import the packages get warnings only, as with any
logger. To get more, they configure the logger or call `show_progress()`.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moses_io.files.errors import printable
from moses_io.files.streams import STANDARD, open_output
from moses_io.files.text import encode

if TYPE_CHECKING:
    from rich.progress import Progress

LOG_INTERVAL = 30.0
"""Seconds between two progress lines if stderr is not a terminal."""

Item = TypeVar("Item")

log = logging.getLogger("moses_rerank")
"""Logger of all packages."""


class Done(NamedTuple):
    """Progress of a stage of a run.

    Attributes:
        fraction: fraction of its work that is done.
        before: fraction that an earlier run has done, which took no time in this run.
    """

    fraction: float
    before: float = 0.0


Watcher = Callable[[Done | None], object]
"""Function that is called when a bar advances, with the progress of the stage, or None if it is not known."""

_open: list["Bar"] = []

_watchers: list[Watcher] = []


class _Lines(logging.Handler):
    """Handler that prints messages as lines on stderr.

    Attributes:
        task: prefix of each line, empty by default. Set in a worker process that runs in parallel to others. No bars
            are drawn then.
    """

    task = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message. If stderr cannot be written (disk full), drop this message and all later ones."""
        warning = "warning: " if record.levelno == logging.WARNING else ""
        try:
            print(f"{self.task}{warning}{record.getMessage()}", file=sys.stderr, flush=True)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


_lines = _Lines()


def _escape(record: logging.LogRecord) -> bool:
    """Escape control characters, so that no text from a file can control the terminal."""
    record.msg = printable(record.getMessage())
    record.args = ()
    return True


log.addFilter(_escape)


def show_progress(on: bool = True) -> None:
    """Turn messages and progress bars on or off for this process."""
    if on:
        log.addHandler(_lines)
    else:
        log.removeHandler(_lines)
    log.setLevel(logging.INFO if on else logging.NOTSET)
    log.propagate = not on  # handlers of the root logger would print the messages twice


def shows_progress() -> bool:
    """Return whether this process prints messages and draws progress bars."""
    return _lines in log.handlers


@contextmanager
def progress_shown() -> Iterator[None]:
    """Print messages and draw progress bars while the block runs, then restore the logger."""
    before, level, propagate = shows_progress(), log.level, log.propagate
    show_progress()
    try:
        yield
    finally:
        show_progress(before)
        log.setLevel(level)
        log.propagate = propagate


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress all messages, including warnings, while the block runs: another process reports the same work."""
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def name_task(name: str) -> None:
    """Prefix all later lines of this process with a task name and draw no bars, as other tasks run in parallel."""
    _lines.task = f"{printable(name)}: "


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call the watcher when a bar advances while the block runs. Bars that are opened show no remaining time."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.pop()


def present_watcher() -> Watcher | None:
    """Return the function that is called when a bar advances, if any."""
    return _watchers[-1] if _watchers else None


class Bar:
    """Progress bar that counts up to `total` units and shows a short status text."""

    def __init__(
        self, progress: "Progress", description: str, total: int | None, done: int = 0, whole: bool = False
    ) -> None:
        self.progress, self._description, self._total, self._whole = progress, description, total, whole
        count, drawn = self._count(done), printable(description)
        self._task = progress.add_task(drawn, total=total, completed=done, count=count, note="")
        self._done = self._before = done
        self._last_line = time.monotonic()
        self._report()

    def advance(self, units: int, status: str, stored: bool = False) -> None:
        """Add `units` to the count and show a status text.

        If no bar is drawn, log a line instead, at most one every `LOG_INTERVAL` seconds. `stored` units were done by an
        earlier run.
        """
        self._done += units
        self._before += units if stored else 0
        now = time.monotonic()
        self.progress.update(self._task, advance=units, count=self._count(self._done))
        self.set_status(status)
        if self.progress.disable and now - self._last_line > LOG_INTERVAL:
            self._last_line = now
            name = "" if _lines.task else f"{self._description}: "
            of_total = "" if self._total is None else f" of {self._total}"
            log.info(f"{name}{self._done}{of_total} {status}".rstrip())
        self._report()

    def set_status(self, text: str) -> None:
        """Show a short status text next to the bar, if it is drawn."""
        self.progress.update(self._task, note=printable(text))

    def hide(self) -> None:
        """Stop drawing the bar."""
        self.progress.update(self._task, visible=False)

    def _report(self) -> None:
        if watcher := present_watcher():
            done, before = (min(1.0, units / (self._total or 1)) for units in (self._done, self._before))
            watcher(Done(done, before) if self._whole and self._total else None)

    def _count(self, done: int) -> str:
        return f"{done}/{self._total}" if self._total is not None else str(done or "")


@contextmanager
def progress_bar(description: str, total: int | None, done: int = 0, whole: bool = False) -> Iterator[Bar]:
    """Show a progress bar below the open ones while the block runs.

    If stderr is not a terminal, the bar logs a line every `LOG_INTERVAL` seconds instead.

    Args:
        description: text to the left of the bar.
        total: number of units, None if unknown.
        done: units at the start.
        whole: whether the units are the whole work of a stage of a run, so that the remaining time of the run can be
            estimated from them.
    """
    with nullcontext(_open[-1].progress) if _open else _progress() as progress:
        bar = Bar(progress, description, total, done, whole)
        _open.append(bar)
        try:
            yield bar
        finally:
            _open.remove(bar)
            bar.hide()


def _progress() -> "Progress":
    """Return a display for a bar and for the bars that are opened while it is open."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    texts = ("{task.description}", "{task.fields[count]}", "{task.fields[note]}")
    name, count, beside = (TextColumn(text, markup=False) for text in texts)
    remaining = () if _watchers else (TimeRemainingColumn(),)  # in a run there is one remaining time, of the whole run
    columns = (name, BarColumn(), count, *remaining, beside)
    drawn = shows_progress() and not log.disabled and not _lines.task and console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=not drawn)


def with_bar(description: str, items: Iterable[Item], total: int | None = None) -> Iterator[Item]:
    """Yield the items and count them with a progress bar. `total` is their number, if known."""
    with progress_bar(description, total) as bar:
        for item in items:
            yield item
            bar.advance(1, "")


def show_status(status: str) -> None:
    """Show a status text next to the innermost open bar, if any, for progress within one of its units."""
    if _open:
        _open[-1].advance(0, f"({status})")


def show_time_left(text: str) -> None:
    """Show the remaining time of a run next to the outermost bar or, if no bar is drawn, log it."""
    if _open and not _open[0].progress.disable:
        _open[0].set_status(text)
    else:
        log.info(text)


def show(lines: Iterable[str]) -> None:
    """Print result lines on stdout, with control characters escaped."""
    with open_output(STANDARD) as stream:
        stream.writelines(encode(f"{printable(line)}\n") for line in lines)


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Return the lines of a table with two spaces between columns.

    Columns whose index is in `left` are aligned to the left, all others to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
