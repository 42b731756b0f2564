"""What a caller from Python may name: a path, or lines in its place."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from moses_io.streams import STANDARD, Lines

Text = str | Path | Iterable[str]
"""A path, as text or `Path`; or lines, in any other iterable."""


def path_of(path: str | Path) -> str:
    """Return a path as the rest of the project names it; from Python `-` is a file, not stdin or stdout."""
    return f"./{STANDARD}" if str(path) == STANDARD else str(path)


def paths_of(paths: str | Path | Sequence[str | Path]) -> list[str]:
    """Return one path, or several, as a list."""
    return [path_of(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def input_of(text: Text, name: str) -> str | Lines:
    """Return a path, or the lines in its place, which messages name as `name`."""
    return path_of(text) if isinstance(text, str | Path) else Lines(name, text)
