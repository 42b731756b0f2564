"""A stage of an experiment: from files to files, or to a folder that is there as a whole or not at all."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_io.streams import digest
from rerank import __version__

Fingerprint = dict[str, Any]
"""All that decides the result of a stage, as JSON values."""


@dataclass(frozen=True)
class Stage:
    """A step from files to a file or folder.

    Attributes:
        name: what it is called on stderr and in the record.
        inputs: files and folders that it reads.
        settings: what else decides its result, as JSON values.
        outputs: the files, or the folder, that it makes.
        action: what makes it.
        apart: whether it can be done in a process of its own; the action can be pickled then.
    """

    name: str
    inputs: tuple[str, ...]
    settings: Any
    outputs: tuple[str, ...]
    action: Callable[[], object]
    apart: bool = False

    def perform(self) -> None:
        """Make the outputs; a folder that was there goes only when the new one is there."""
        with _set_aside([path for path in map(Path, self.outputs) if path.is_dir()]):
            self.action()

    def recover(self) -> None:
        """Bring back what was set aside for a run that was killed."""
        _bring_back(list(map(Path, self.outputs)))

    def needs(self, other: "Stage") -> bool:
        """Tell whether it reads what the other makes."""
        made = [Path(path).resolve() for path in other.outputs]
        return any(
            not {path, *path.parents}.isdisjoint(made) for path in (Path(each).resolve() for each in self.inputs)
        )


def fingerprint(inputs: Sequence[str], settings: Any) -> Fingerprint:
    """Return the fingerprint of a stage; files count by their content, so that a folder may move."""
    return {"version": __version__, "settings": json.loads(json.dumps(settings)), "inputs": digests(inputs)}


def digests(paths: Sequence[str]) -> list[Any]:
    """Digest of each file, of each file of a folder, or None where there is neither."""
    return [_digest(Path(path)) for path in paths]


def _digest(path: Path) -> Any:
    if path.is_dir():
        return {str(child.relative_to(path)): digest(child) for child in sorted(path.rglob("*")) if child.is_file()}
    return digest(path) if path.exists() else None


def make_or_go_on(folder: str, inputs: Sequence[str], settings: Any, make: Callable[[str], object]) -> None:
    """Make the folder of a stage beside its place and move it there.

    What a killed run left of a stage with the same inputs and settings goes on: `make` begins a folder or finishes it.
    """
    place = Path(folder)
    key = hashlib.sha256(json.dumps(fingerprint(inputs, settings)).encode()).hexdigest()[:12]
    beside = place.with_name(f".{place.name}.training-{key}")
    for other in place.parent.glob(f".{place.name}.training-*"):
        if other != beside:
            shutil.rmtree(other)
    make(str(beside / place.name))
    (beside / place.name).rename(place)
    beside.rmdir()


@contextlib.contextmanager
def _set_aside(folders: Sequence[Path]) -> Iterator[None]:
    """Keep folders under another name while the block makes new ones; if it fails, they come back."""
    for folder in folders:
        folder.rename(_aside(folder))
    try:
        yield
    except BaseException:
        _bring_back(folders)
        raise
    for folder in folders:
        shutil.rmtree(_aside(folder))


def _bring_back(folders: Sequence[Path]) -> None:
    for folder in folders:
        if _aside(folder).is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            _aside(folder).rename(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before")
