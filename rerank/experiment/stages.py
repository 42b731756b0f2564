"""Stages of an experiment: each is done again only when what it reads or made has changed."""

import glob
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from features.progress import log, progress_bar
from moses_io.files.errors import InputError
from moses_io.files.folders import locked_with_contents, remove
from moses_io.files.json_files import read_record
from moses_io.files.streams import check_plain, digest, hidden, open_output, remove_temporaries
from rerank import __version__
from rerank.experiment.workers import workers

RECORD = "stages.json"
"""What was made, in the folder of results."""

WORK = {
    "train": 50.0, "translate": 15.0, "score": 4.0, "tune": 16.0, "estimate": 18.0, "ablate dev": 66.0, "evaluate": 9.0,
    "attend": 3.0, "run": 120.0,
}  # fmt: skip
"""Seconds that stages of the sample take, by their names or the first words of these; others take about one."""


@dataclass(frozen=True)
class Stage:
    """A step from files and folders to files, or to a folder.

    Empty `inputs` are left out; `settings` is what else decides its result, as JSON values. A stage that can be done
    `apart`, in a process of its own, has an action that can be pickled.
    """

    name: str
    inputs: Sequence[str]
    settings: Any
    outputs: Sequence[str]
    action: Callable[[], object]
    apart: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(filter(None, self.inputs)))

    @property
    def work(self) -> float:
        """How long it takes, compared with other stages."""
        return WORK.get(self.name, WORK.get(self.name.partition(" ")[0].rstrip(","), 1.0))

    def perform(self) -> None:
        """Make the outputs, in the place of links and pipes that are there: where these lead is not ours."""
        for path in map(Path, self.outputs):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                path.unlink(missing_ok=True)
        with progress_bar(self.name, None):
            self.action()

    def clear(self) -> None:
        """Remove what is left beside folders that were made; a training of other settings may still go on."""
        for path in map(Path, self.outputs):
            for beside in _trainings(path):
                if not (beside / path.name).exists():
                    remove(beside)


def run_stages(stages: Sequence[Stage], path: Path, jobs: int = 1, address: str = "") -> None:
    """Do the stages whose inputs, settings or outputs are not those of the record in `path`.

    With several jobs, stages that do not need each other and can be done apart are done at the same time; with the
    address of a Ray cluster, such stages are done there. What the record does not know is left alone.

    Raises:
        InputError: before anything is done: a file that no stage makes is not there or cannot be read twice, one that
            a stage makes is there already and not of this record, or the record cannot be read.
    """
    record = _Record(path)
    _check_files(stages, record)
    for written in (path, *(Path(output) for stage in stages for output in stage.outputs)):
        remove_temporaries(written)
    waiting = list(stages)
    running: dict[str, Stage] = {}
    with workers(min(jobs, sum(stage.apart for stage in stages) or 1), address) as pool:
        needs = _needs(stages)
        began = monotonic()
        done = 0.0  # work of the stages that have ended
        while waiting or running:
            ready = _ready(waiting, running, needs) if pool.free else None
            if ready is None:
                ended = running.pop(pool.wait())
                record.end(ended)
                done += ended.work
                continue
            place = f"[{stages.index(ready) + 1}/{len(stages)}] {ready.name}"
            if not record.begin(ready):
                waiting.remove(ready)
                log.info(f"{place}: up to date")
                continue
            left = sum(stage.work for stage in (*running.values(), *waiting))
            log.info(f"{place}{_time_left(done, left, monotonic() - began)}")
            waiting.remove(ready)
            if (jobs > 1 or address) and ready.apart:
                running[ready.name] = ready
                pool.start(ready.name, ready.perform)
            else:
                ready.perform()
                record.end(ready)
                done += ready.work


def _time_left(done: float, left: float, seconds: float) -> str:
    """Return the end of a line, which extrapolates the seconds that the work took that is done; empty before any is."""
    if not done:
        return ""
    minutes = round(seconds * left / done / 60)
    if minutes < 1:
        return ", under a minute left of the whole"
    if minutes < 60:
        return f", about {minutes} min left of the whole"
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return f", about {hours} h{f' {rest} min' if rest else ''} left of the whole"


class _Record:
    """Of each stage when it was last done the fingerprint and digests of what it made; a file of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun: dict[str, dict[str, Any]] = {}
        self.stages: dict[str, dict[str, Any]] = _read_record(path) if os.path.lexists(path) else {}

    def begin(self, stage: Stage) -> bool:
        """Note that a stage begins and return True, unless it is up to date."""
        before = _fingerprint(stage.inputs, stage.settings)
        made = {"outputs": _digests(stage.outputs)}
        if self.stages.get(stage.name) == {**before, **made} and None not in made["outputs"]:
            stage.clear()
            return False
        self._begun[stage.name] = before
        self.stages.setdefault(stage.name, {})
        self._write()
        return True

    def end(self, stage: Stage) -> None:
        """Note that a stage was done with what it read when it began."""
        self.stages[stage.name] = {**self._begun.pop(stage.name), "outputs": _digests(stage.outputs)}
        self._write()
        stage.clear()

    def _write(self) -> None:
        with open_output(str(self._path)) as stream:
            stream.write(_as_json(self.stages))


def digests_read(path: Path) -> set[str]:
    """Return the digests of the files that stages of a record have read."""
    stages = _read_record(path) if os.path.lexists(path) else {}
    inputs = (stage.get("inputs") for stage in stages.values())
    return {each for listed in inputs if isinstance(listed, list) for each in listed if isinstance(each, str)}


def _read_record(path: Path) -> dict[str, dict[str, Any]]:
    """Return what `_Record` has written."""
    if path.is_symlink():
        raise InputError(f"{path}: a symbolic link, expected a file of an earlier run; remove it")
    try:
        return read_record(path, dict[str, dict[str, Any]])
    except InputError as error:
        raise InputError(f"{error}; remove the folder of results to do everything again") from None


def _as_json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _fingerprint(inputs: Sequence[str], settings: Any) -> dict[str, Any]:
    """Return, as JSON values, all that decides the result of a stage."""
    return {"version": __version__, "settings": json.loads(json.dumps(settings)), "inputs": _digests(inputs)}


def _digests(paths: Sequence[str]) -> list[Any]:
    """Digest of each file, of each file of a folder, or None; by content, so that a folder that moved is up to date."""
    return [_digest(Path(path)) for path in paths]


def _digest(path: Path) -> Any:
    """Digest a file or folder; a link in a folder counts as what it leads to, None where that is not there."""
    if not path.is_dir():
        return digest(path) if path.is_file() else None
    below = sorted(path.rglob("*"))
    digests: dict[str, Any] = {str(child.relative_to(path)): digest(child) for child in below if child.is_file()}
    links = (child for child in below if child.is_symlink() and not child.is_file())
    return digests | {str(link.relative_to(path)): _digest(link.resolve()) if link.exists() else None for link in links}


def _needs(stages: Sequence[Stage]) -> dict[str, frozenset[str]]:
    """Return, by the name of each stage, the names of those that make what it reads."""
    makers = {_real(path): stage.name for stage in stages for path in stage.outputs}
    needs = {}
    for stage in stages:
        read = {_real(path) for path in stage.inputs}
        places = {place for path in read for place in (path, *path.parents)}
        needs[stage.name] = frozenset(makers[place] for place in places if place in makers)
    return needs


def _real(path: str) -> Path:
    """Return where a path leads; a link that leads to itself leads nowhere else."""
    return Path(os.path.realpath(path))


def _ready(waiting: Sequence[Stage], running: Mapping[str, Stage], needs: Mapping[str, frozenset[str]]) -> Stage | None:
    """Return the first stage that needs none of those before it that are not done.

    What cannot be done apart is done when nothing else is under way, so that its progress can be seen.
    """
    undone = set(running)
    for stage in waiting:
        if (stage.apart or not running) and needs[stage.name].isdisjoint(undone):
            return stage
        undone.add(stage.name)
    return None


def _check_files(stages: Sequence[Stage], record: _Record) -> None:
    made = {Path(path) for stage in stages for path in stage.outputs}
    for stage in stages:
        for path in map(Path, stage.inputs):
            if made.isdisjoint({path, *path.parents}) and not path.is_dir():
                check_plain(str(path))
        for path in map(Path, stage.outputs):
            if stage.name not in record.stages and os.path.lexists(path):
                raise InputError(f"{path}: this is there already and not of an earlier run; remove or rename it")


def folder_stage(
    name: str, inputs: Sequence[str], settings: Any, folder: str, make: Callable[[str], object], apart: bool = False
) -> Stage:
    """Return a stage that makes a folder, as `make_or_go_on` does."""
    action = partial(make_or_go_on, folder, list(filter(None, inputs)), settings, make)
    return Stage(name, inputs, settings, (folder,), action, apart)


def make_or_go_on(folder: str, inputs: Sequence[str], settings: Any, make: Callable[[str], object]) -> None:
    """Make the folder of a stage beside its place and move it there; one that was there stays until then.

    What a killed run left of a stage with the same inputs and settings goes on: `make` begins a folder or finishes it.
    One that was finished is known by the digests of its files, also in its place, if the run was killed before it
    could record it; `Stage.clear` removes these digests.
    """
    place = Path(folder)
    key = hashlib.sha256(json.dumps(_fingerprint(inputs, settings)).encode()).hexdigest()[:12]
    beside = place.with_name(f"{hidden(place.name)}.training-{key}")
    new, before, finished = beside / place.name, beside / ".before", beside / ".finished"
    links = any(path.is_symlink() for path in (beside, new, finished))
    for other in _trainings(place):
        if links or other != beside:
            remove(other)
    digests = finished.read_bytes() if finished.is_file() else b""
    if digests and digests == _as_json(_digest(place)):
        return
    if not digests or digests != _as_json(_digest(new)):
        make(str(new))
        with open_output(str(finished)) as stream:
            stream.write(_as_json(_digest(new)))
    if place.is_dir():
        with locked_with_contents(place):  # another process may be at work there, in a training of its own
            place.rename(before)
    new.rename(place)
    if before.exists():
        remove(before)


def _trainings(folder: Path) -> list[Path]:
    """Return the places beside a folder in which it was made, or is being made, by settings and inputs."""
    return list(folder.parent.glob(f"{glob.escape(hidden(folder.name))}.training-*"))
