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
from rerank.experiment.workers import Workers


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
    inputs: tuple[Path, ...]
    settings: Any
    outputs: tuple[Path, ...]
    action: Callable[[], object]
    apart: bool = False

    def perform(self) -> None:
        """Make the outputs; a folder that was there goes only when the new one is there."""
        with _set_aside([path for path in self.outputs if path.is_dir()]):
            self.action()

    def needs(self, other: "Stage") -> bool:
        """Tell whether it reads what the other makes."""
        made = [path.resolve() for path in other.outputs]
        return any(not {path, *path.parents}.isdisjoint(made) for path in map(Path.resolve, self.inputs))


def wanted(inputs: Sequence[Path], settings: Any) -> dict[str, Any]:
    """Return, as JSON values, all that decides the result of a stage."""
    return {"version": __version__, "settings": json.loads(json.dumps(settings)), "inputs": _digests(inputs)}


def run_stages(stages: Sequence[Stage], record: Path, jobs: int = 1) -> list[str]:
    """Do the stages whose inputs, settings or outputs are not those of the record, and keep the record.

    With several jobs, stages that do not need each other and can be done apart are done at the same time. What the
    record does not know is left alone.

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
    waiting, done = list(stages), []
    running: dict[str, tuple[Stage, dict[str, Any]]] = {}
    with Workers(min(jobs, sum(stage.apart for stage in stages) or 1)) as workers:
        while waiting or running:
            ready = _ready(waiting, [stage for stage, _ in running.values()]) if workers.free else None
            if ready is None:
                stage, asked = running.pop(workers.wait())
            else:
                waiting.remove(ready)
                stage, asked = ready, wanted(ready.inputs, ready.settings)
                new = known.get(stage.name) != {**asked, "outputs": _digests(stage.outputs)}
                note(f"[{stages.index(stage) + 1}/{len(stages)}] {stage.name}{'' if new else ': up to date'}")
                if not new:
                    continue
                known.setdefault(stage.name, {})
                _write(record, known)
                if jobs > 1 and stage.apart:
                    running[stage.name] = stage, asked
                    workers.start(stage.name, stage.perform)
                    continue
                stage.perform()
            known[stage.name] = {**asked, "outputs": _digests(stage.outputs)}
            _write(record, known)
            done.append(stage.name)
    return done


def _ready(waiting: Sequence[Stage], running: Sequence[Stage]) -> Stage | None:
    """Return the first stage that needs none of those before it that are not done.

    What cannot be done apart is done when nothing else is under way, so that its progress can be seen.
    """
    for number, stage in enumerate(waiting):
        if (stage.apart or not running) and not any(stage.needs(other) for other in (*waiting[:number], *running)):
            return stage
    return None


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
