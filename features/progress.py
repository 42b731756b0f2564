"""Progress on stderr: a bar where a person watches, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A bar that counts `total` units and shows a few words beside them."""

    def __init__(self, progress: Progress, description: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=total, note="")

    def advance(self, units: int, note: str) -> None:
        """Count `units` more and show `note`."""
        self._progress.update(self._task, advance=units, note=note)


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Bar]:
    """Show a bar while the block runs, and nothing where stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, TextColumn("{task.fields[note]}"), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Bar(progress, description, total)


def note(message: str) -> None:
    """Tell a person something on stderr."""
    print(message, file=sys.stderr, flush=True)
