"""Stages of an experiment: each is done again only when what it reads has changed."""

import contextlib
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features.progress import note
from moses_io.errors import InputError
from moses_io.streams import digest, open_output
from rerank import __version__


@dataclass(frozen=True)
class Stage:
    """A step from files to a file or folder.

    Attributes:
        name: what it is called on stderr and in the record.
        inputs: files and folders that it reads.
        settings: what else decides its result, as JSON values.
        outputs: the files, or the folder, that it makes.
        action: what makes it.
    """

    name: str
    inputs: tuple[Path, ...]
    settings: Any
    outputs: tuple[Path, ...]
    action: Callable[[], object]

    def wanted(self) -> dict[str, Any]:
        """Return, as JSON values, all that decides the result."""
        return {
            "version": __version__,
            "settings": json.loads(json.dumps(self.settings)),
            "inputs": _digests(self.inputs),
        }


def run_stages(stages: Sequence[Stage], record: Path) -> list[str]:
    """Do the stages whose inputs, settings or outputs are not those of the record, and keep the record.

    A folder that a stage made before goes only when the new one is there. What the record does not know is left alone.

    Returns:
        The names of the stages that were done.

    Raises:
        InputError: a file that no stage makes is not there, one that a stage makes is there already and not of this
            record, or the record cannot be read; told before anything is done.
    """
    known = _read(record)
    _check_files(stages, known)
    for stage in stages:
        _recover(stage.outputs)
    done = []
    for number, stage in enumerate(stages, start=1):
        place = f"[{number}/{len(stages)}] {stage.name}"
        wanted = stage.wanted()
        if known.get(stage.name) == {**wanted, "outputs": _digests(stage.outputs)}:
            note(f"{place}: up to date")
            continue
        note(place)
        if stage.name not in known:
            _write(record, known | {stage.name: {}})
        with _set_aside([path for path in stage.outputs if path.is_dir()]):
            stage.action()
        known[stage.name] = {**wanted, "outputs": _digests(stage.outputs)}
        _write(record, known)
        done.append(stage.name)
    return done


def _check_files(stages: Sequence[Stage], known: dict[str, Any]) -> None:
    made = {path for stage in stages for path in stage.outputs}
    for stage in stages:
        for path in stage.inputs:
            if made.isdisjoint({path, *path.parents}) and not path.exists():
                raise InputError(f"{path}: No such file or directory")
        for path in stage.outputs:
            if stage.name not in known and path.exists():
                raise InputError(f"{path}: this is there already and not of an earlier run; remove or rename it")


def _digests(paths: Sequence[Path]) -> list[Any]:
    """Content without names, so that a folder that was moved is still up to date."""
    return [_digest(path) for path in paths]


@contextlib.contextmanager
def _set_aside(folders: Sequence[Path]) -> Iterator[None]:
    """Keep folders under another name while the block makes new ones; if it fails, they come back."""
    for folder in folders:
        folder.rename(_aside(folder))
    try:
        yield
    except BaseException:
        _recover(folders)
        raise
    for folder in folders:
        shutil.rmtree(_aside(folder))


def _recover(folders: Sequence[Path]) -> None:
    """Bring back what was set aside for a stage that failed, or that was killed in an earlier run."""
    for folder in folders:
        if _aside(folder).is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            _aside(folder).rename(folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder of results for this process.

    Raises:
        InputError: another process holds it.
    """
    with open(folder / ".lock", "w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another run is at work here") from None
        yield


def _digest(path: Path) -> Any:
    """Digest of a file, of each file of a folder, or None where there is neither."""
    if path.is_dir():
        return {str(child.relative_to(path)): digest(child) for child in sorted(path.rglob("*")) if child.is_file()}
    return digest(path) if path.exists() else None


def _write(record: Path, known: dict[str, Any]) -> None:
    with open_output(str(record)) as stream:
        stream.write(json.dumps(known, indent=1).encode() + b"\n")


def _read(record: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise InputError(f"{record}: cannot be read; remove the folder of results to do everything again") from None
    return known
