"""The stages of an experiment: each is done again only when what it reads or made has changed."""

import contextlib
import fcntl
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from features.progress import note
from moses_io.errors import InputError
from moses_io.streams import open_output
from rerank.experiment.stage import Fingerprint, Stage, digests, fingerprint
from rerank.experiment.workers import Workers


def run_stages(stages: Sequence[Stage], path: Path, jobs: int = 1) -> list[str]:
    """Do the stages whose inputs, settings or outputs are not those of the record in `path`, and keep the record.

    With several jobs, stages that do not need each other and can be done apart are done at the same time. What the
    record does not know is left alone.

    Returns:
        The names of the stages that were done.

    Raises:
        InputError: before anything is done: a file that no stage makes is not there, one that a stage makes is there
            already and not of this record, or the record cannot be read.
    """
    record = _Record(path)
    _check_files(stages, record)
    for stage in stages:
        stage.recover()
    waiting, done = list(stages), []
    running: dict[str, Stage] = {}
    with Workers(min(jobs, sum(stage.apart for stage in stages) or 1)) as workers:
        while waiting or running:
            ready = _ready(waiting, list(running.values())) if workers.free else None
            if ready is None:
                ended = running.pop(workers.wait())
                record.end(ended)
                done.append(ended.name)
                continue
            waiting.remove(ready)
            due = record.begin(ready)
            note(f"[{stages.index(ready) + 1}/{len(stages)}] {ready.name}{'' if due else ': up to date'}")
            if due:
                running[ready.name] = ready
                workers.start(ready.name, ready.perform, apart=jobs > 1 and ready.apart)
    return done


class _Record:
    """What each stage read and made when it was last done, by its name, in a file of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun: dict[str, Fingerprint] = {}
        try:
            self._stages: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._stages = {}
        except ValueError:
            raise InputError(f"{path}: cannot be read; remove the folder of results to do everything again") from None

    def knows(self, stage: Stage) -> bool:
        """Tell whether what the stage makes is of an earlier run."""
        return stage.name in self._stages

    def begin(self, stage: Stage) -> bool:
        """Note that a stage begins and return True, unless it is up to date."""
        before = fingerprint(stage.inputs, stage.settings)
        if self._stages.get(stage.name) == {**before, "outputs": digests(stage.outputs)}:
            return False
        self._begun[stage.name] = before
        self._stages.setdefault(stage.name, {})
        self._write()
        return True

    def end(self, stage: Stage) -> None:
        """Note that a stage was done, with the inputs that it had when it began."""
        self._stages[stage.name] = {**self._begun.pop(stage.name), "outputs": digests(stage.outputs)}
        self._write()

    def _write(self) -> None:
        with open_output(str(self._path)) as stream:
            stream.write(json.dumps(self._stages, indent=1).encode() + b"\n")


def _ready(waiting: Sequence[Stage], running: Sequence[Stage]) -> Stage | None:
    """Return the first stage that needs none of those before it that are not done.

    What cannot be done apart is done when nothing else is under way, so that its progress can be seen.
    """
    for number, stage in enumerate(waiting):
        if (stage.apart or not running) and not any(stage.needs(other) for other in (*waiting[:number], *running)):
            return stage
    return None


def _check_files(stages: Sequence[Stage], record: _Record) -> None:
    made = {Path(path) for stage in stages for path in stage.outputs}
    for stage in stages:
        for path in map(Path, stage.inputs):
            if made.isdisjoint({path, *path.parents}) and not path.exists():
                raise InputError(f"{path}: No such file or directory")
        for path in map(Path, stage.outputs):
            if not record.knows(stage) and path.exists():
                raise InputError(f"{path}: this is there already and not of an earlier run; remove or rename it")


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
