"""What a caller names: a path, from Python also lines in its place, and what it may not write over."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from moses_io.errors import InputError
from moses_io.streams import STANDARD, Lines

Text = str | Path | Iterable[str]
"""A path, as text or `Path`; or lines, in any other iterable."""

_PARTS = re.compile(
    r"config\.json|.*\.(safetensors|vocabulary|bpe)|(features|scores)\.dat|init\.(dense|opt)|sparse-weights"
)
"""Names of files that make a folder a model, or one that `export` wrote."""


def path_of(path: str | Path) -> str:
    """Return a path as the rest of the project names it; from Python `-` is a file, not stdin or stdout."""
    return f"./{STANDARD}" if str(path) == STANDARD else str(path)


def paths_of(paths: str | Path | Sequence[str | Path]) -> list[str]:
    """Return one path, or several, as a list."""
    return [path_of(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def input_of(text: Text, name: str) -> str | Lines:
    """Return a path, or the lines in its place, which messages name as `name`."""
    return path_of(text) if isinstance(text, str | Path) else Lines(name, text)


def check_output(output: str, inputs: Iterable[str]) -> None:
    """Refuse to write over a file that is read, by whatever name: an input, or a part of a folder among them.

    Raises:
        InputError: it is one of them.
    """
    if not os.path.exists(output):
        return
    for path in inputs:
        if (os.path.isfile(path) and os.path.samefile(path, output)) or _is_part(output, path):
            raise InputError(f"{output}: the command reads this file and would write over it; name another output")


def _is_part(output: str, folder: str) -> bool:
    """Tell whether a file is one of a model, of a reranker or of an export in that folder."""
    real = Path(os.path.realpath(output))
    if not os.path.isdir(folder) or Path(os.path.realpath(folder)) not in real.parents:
        return False
    from rerank.reranker.folder import MANIFEST  # which reads rerankers: not for commands that name none

    return _PARTS.fullmatch(real.name) is not None or os.path.isfile(os.path.join(folder, MANIFEST))
