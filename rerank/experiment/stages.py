"""Stages of an experiment. A stage runs again only if its inputs, settings or outputs have changed."""

import glob
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from features.progress import log, present_watcher, progress_bar, watched
from moses_io.files.errors import InputError
from moses_io.files.folders import locked_with_contents, remove
from moses_io.files.json_files import read_record
from moses_io.files.streams import check_plain, digest, hidden, open_output, remove_temporaries
from rerank import __version__
from rerank.experiment.clock import Clock, Work
from rerank.experiment.workers import workers

_VERSION = ".".join(__version__.split(".")[:2])
"""Version whose results stay up to date. Patch versions only fix bugs."""

RECORD = "stages.json"
"""File in the folder of results with the fingerprint of each stage, the digests of its outputs, and their paths."""

MAX_RECORD_BYTES = 256 * 2**20
"""Maximum size of this file. A study may have thousands of stages."""


@dataclass(frozen=True)
class Stage:
    """A step that reads files and folders and writes files or one folder.

    Attributes:
        name: unique name. It is also shown as progress.
        inputs: paths that it reads. Empty paths are dropped.
        settings: all other values that determine the result, as JSON values.
        outputs: paths that it writes.
        action: function that writes the outputs.
        separate: whether it can run in a separate process. The action is then picklable.
        work: expected work, for the estimate of the remaining time. None: unknown, so that no estimate is possible.
        after: paths that other stages must have written before, although it does not read them.
    """

    name: str
    inputs: Sequence[str]
    settings: Any
    outputs: Sequence[str]
    action: Callable[[], object]
    separate: bool = False
    work: Work | None = None
    after: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(filter(None, self.inputs)))

    def perform(self) -> None:
        """Run the action. Links and pipes at the output paths are removed first: their targets belong to the user."""
        for path in map(Path, self.outputs):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                path.unlink(missing_ok=True)
        with progress_bar(self.name, None):
            self.action()

    def clear(self) -> None:
        """Remove temporary folders of finished outputs.

        Unfinished trainings with other settings stay until the stage runs again, because a run with those settings may
        resume them.
        """
        for path in map(Path, self.outputs):
            for training_folder in trainings_of(path):
                if not (training_folder / path.name).exists():
                    remove(training_folder)


def run_stages(
    stages: Sequence[Stage],
    path: Path,
    jobs: int = 1,
    address: str = "",
    revise: Callable[[Stage], Sequence[Stage] | None] | None = None,
) -> None:
    """Run the stages whose inputs, settings or outputs differ from the record.

    With `jobs` > 1 or a Ray cluster, independent stages that are `separate` run at the same time. Entries of the record
    without a stage stay unchanged.

    Args:
        stages: in an order in which they can run.
        path: the record.
        jobs: maximum number of processes.
        address: address of a Ray cluster, or empty for processes of this machine.
        revise: called with each stage that has ended or is up to date. It can return another list of stages. Those
            that have already run are not repeated if their settings are the same.

    Raises:
        InputError: before any stage runs: an input that no stage makes is missing or no plain file, an output exists
            that is not in the record, or the record cannot be read. Later: a stage fails.
    """
    record = _open_record(path, stages)
    queue, processes = _Queue(stages), min(jobs, sum(stage.separate for stage in stages) or 1)
    clock = Clock(processes, queue.choose, present_watcher())

    def end(stage: Stage) -> None:
        if revise and (revised := revise(stage)) is not None:
            _check_files(revised, record)
            queue.revise(revised, record)

    def finish(stage: Stage) -> None:
        record.end(stage)
        clock.end(stage.name)
        end(stage)

    with workers(processes, address, clock.update) as pool:
        while queue.waiting or queue.running:
            ready = queue.choose(queue.waiting, list(queue.running.values())) if pool.free else None
            if ready is None:
                finish(queue.running.pop(pool.wait()))
                continue
            label = f"[{queue.stages.index(ready) + 1}/{len(queue.stages)}] {ready.name}"
            queue.waiting.remove(ready)
            queue.ran[ready.name] = record.begin(ready)
            if not queue.ran[ready.name]:
                log.info(f"{label}: up to date")
                end(ready)
                continue
            outdated = _outdated(queue.stages, record, queue.needs, queue.ran)
            clock.waiting = [stage for stage in queue.waiting if stage.name in outdated]
            log.info(f"{label}{clock.begin(ready)}")
            if (jobs > 1 or address) and ready.separate:
                queue.running[ready.name] = ready
                pool.start(ready.name, ready.perform)
            else:
                with watched(partial(clock.update, ready.name)):
                    ready.perform()
                finish(ready)


class _Queue:
    """The stages of a run.

    Attributes:
        stages: all stages.
        waiting: stages that have not begun.
        running: stages that run in another process, by name.
        ran: for each stage that has begun, whether it runs in this run. False if it is up to date.
        needs: for each stage, the names of the stages that must end before it.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages, self.waiting, self.needs = stages, list(stages), _needs(stages)
        self.running: dict[str, Stage] = {}
        self.ran: dict[str, bool] = {}

    def choose(self, waiting: Sequence[Stage], running: Sequence[Stage]) -> Stage | None:
        """Return the next stage that can run, or None."""
        return _ready(waiting, running, self.needs)

    def revise(self, stages: Sequence[Stage], record: "_Record") -> None:
        """Replace the stages. Those that run, or have run with the same settings, do not wait again."""
        begun = {each.name for each in stages if each.name in self.ran and record.is_complete(each)} | set(self.running)
        self.stages, self.needs = stages, _needs(stages)
        self.waiting = [stage for stage in stages if stage.name not in begun]


def expected_seconds(stages: Sequence[Stage], jobs: int) -> float:
    """Return the expected time of stages if all run from the start, up to `jobs` at a time. All have expected work."""
    whole = [replace(stage, work=replace(stage.work, done=0.0)) for stage in stages if stage.work]
    clock = Clock(min(jobs, len(stages)), partial(_ready, needs=_needs(stages)))
    clock.waiting = whole
    return clock.left() or 0.0


def _outdated(
    stages: Sequence[Stage], record: "_Record", needs: Mapping[str, frozenset[str]], ran: Mapping[str, bool]
) -> set[str]:
    """Return the names of the stages that run in this run or are expected to.

    A stage is expected to run if its settings differ from the record, an output is missing, or it reads what another
    such stage makes. Contents of files are only compared when the stage is about to begin, because that takes long.
    """
    names = set[str]()
    for stage in stages:
        begun = stage.name in ran
        if ran[stage.name] if begun else not record.is_complete(stage) or not names.isdisjoint(needs[stage.name]):
            names.add(stage.name)
    return names


class _Record:
    """The fingerprint of each stage at its last run, and the digests of its outputs, as a JSON file.

    It also has all paths that a stage of this name ever wrote, relative to the folder of the record. Another stage may
    write them in a later run, for example after a shortlist was added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun: dict[str, dict[str, Any]] = {}
        self._stages: dict[str, dict[str, Any]] = _read_record(path) if os.path.lexists(path) else {}

    def owns(self, stage: Stage, path: str) -> bool:
        """Return whether this or an earlier run has written an output of a stage, or has begun to."""
        entry = self._stages.get(stage.name)
        if entry is not None and not _paths(entry):  # the record of an earlier version has no paths
            return True
        relative = self._relative(path)
        return any(relative in _paths(entry) for entry in self._stages.values())

    def is_complete(self, stage: Stage) -> bool:
        """Return whether a stage has run with its present settings and its outputs exist, whatever their contents."""
        entry = self._stages.get(stage.name, {})
        same = (entry.get("version"), entry.get("settings")) == (_VERSION, _as_recorded(stage.settings))
        return same and all(map(os.path.lexists, stage.outputs))

    def begin(self, stage: Stage) -> bool:
        """Record that a stage begins and return True, or return False if it is up to date."""
        before = _fingerprint(stage.inputs, stage.settings)
        made = {"outputs": _digests(stage.outputs)}
        entry = self._stages.get(stage.name, {})
        # None is the digest of a missing output.
        if {**entry, "paths": None} == {**before, **made, "paths": None} and None not in made["outputs"]:
            stage.clear()
            return False
        self._begun[stage.name] = before
        # From now on the outputs belong to this run, even if it is killed.
        paths = sorted({*_paths(entry), *map(self._relative, stage.outputs)})
        self._stages[stage.name] = entry | {"paths": paths}
        self._write()
        return True

    def end(self, stage: Stage) -> None:
        """Record that a stage has ended, with the fingerprint of its inputs when it began."""
        made = {"outputs": _digests(stage.outputs), "paths": _paths(self._stages[stage.name])}
        self._stages[stage.name] = self._begun.pop(stage.name) | made
        self._write()
        stage.clear()

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._path.parent)

    def _write(self) -> None:
        with open_output(str(self._path)) as stream:
            stream.write(_as_json(self._stages))


def _open_record(path: Path, stages: Sequence[Stage]) -> _Record:
    """Read the record, check the files of all stages, and remove what a killed run left."""
    record = _Record(path)
    _check_files(stages, record)
    for written in (path, *(Path(output) for stage in stages for output in stage.outputs)):
        remove_temporaries(written)
    return record


def _check_outputs(stages: Sequence[Stage]) -> None:
    """Raise `InputError` if two stages would write the same file, as those of sets named `news` and `news.all` may."""
    owners: dict[str, str] = {}
    for stage in stages:
        for output in stage.outputs:
            other = owners.setdefault(output, stage.name)
            if other != stage.name:
                raise InputError(f"{output}: '{other}' and '{stage.name}' would both write it. Rename a test set")


def has_settings(path: Path, settings: Any) -> bool:
    """Return whether a stage of a record has run with these settings."""
    stages = _read_record(path) if os.path.lexists(path) else {}
    return any(stage.get("settings") == _as_recorded(settings) for stage in stages.values())


def digests_read(path: Path) -> set[str]:
    """Return the digests of all files that stages of a record have read."""
    stages = _read_record(path) if os.path.lexists(path) else {}
    inputs = (stage.get("inputs") for stage in stages.values())
    return {each for listed in inputs if isinstance(listed, list) for each in listed if isinstance(each, str)}


def _read_record(path: Path) -> dict[str, dict[str, Any]]:
    if path.is_symlink():
        raise InputError(f"{path}: a symbolic link, expected a file of an earlier run. Remove it")
    try:
        return read_record(path, dict[str, dict[str, Any]], MAX_RECORD_BYTES)
    except InputError as error:
        raise InputError(f"{error}. Remove the folder of results to repeat all stages") from None


def _paths(entry: Mapping[str, Any]) -> list[str]:
    """Return the paths of an entry of the record. Records of earlier versions have none."""
    paths = entry.get("paths")
    return [each for each in paths if isinstance(each, str)] if isinstance(paths, list) else []


def _as_json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _fingerprint(inputs: Sequence[str], settings: Any) -> dict[str, Any]:
    """Return everything that determines the result of a stage, as JSON values."""
    return {"version": _VERSION, "settings": _as_recorded(settings), "inputs": _digests(inputs)}


def _as_recorded(settings: Any) -> Any:
    """Return settings as a record has them: tuples become lists."""
    return json.loads(json.dumps(settings))


def _digests(paths: Sequence[str]) -> list[Any]:
    """Return the digest of each path, see `_digest`. Paths do not count, so a moved folder stays up to date."""
    return [_digest(Path(path)) for path in paths]


def _digest(path: Path, above: frozenset[Path] = frozenset()) -> Any:
    """Return the digest of a file, or of each file in a folder by its relative path, or None if the path is missing.

    Symbolic links in a folder are followed, except links to a folder that contains them, which would never end.
    `above`: folders that are being digested, with their parents. Hidden files, which file managers and network file
    systems add, and `README.md`, which users may edit, do not count.
    """
    if not path.is_dir():
        return digest(path) if path.is_file() else None
    names = (child for child in path.rglob("*") if child != path / "README.md")
    below = sorted(child for child in names if not any(part.startswith(".") for part in child.relative_to(path).parts))
    digests: dict[str, Any] = {str(child.relative_to(path)): digest(child) for child in below if child.is_file()}
    links = (child for child in below if child.is_symlink() and not child.is_file())
    around = above.union((path.resolve(), *path.resolve().parents))
    targets = {str(link.relative_to(path)): Path(os.path.realpath(link)) for link in links}
    return digests | {
        link: _digest(target, around) if target.exists() and target not in around else None
        for link, target in targets.items()
    }


def _needs(stages: Sequence[Stage]) -> dict[str, frozenset[str]]:
    """Return, for each stage name, the names of the stages that make its inputs, or the paths in `after`."""
    makers = {_real(path): stage.name for stage in stages for path in stage.outputs}
    needs = {}
    for stage in stages:
        read = {_real(path) for path in (*stage.inputs, *stage.after)}
        above = {each for path in read for each in (path, *path.parents)}
        needs[stage.name] = frozenset(makers[path] for path in above if path in makers)
    return needs


def _real(path: str) -> Path:
    """Return a path with symbolic links resolved. A link to itself stays as it is."""
    return Path(os.path.realpath(path))


def _ready(waiting: Sequence[Stage], running: Sequence[Stage], needs: Mapping[str, frozenset[str]]) -> Stage | None:
    """Return the first stage that needs no unfinished stage before it, or None if there is none.

    A stage that is not `separate` runs while no other stage is running, so that its progress is visible.
    """
    if not all(stage.separate for stage in running):
        return None
    undone = {stage.name for stage in running}
    for stage in waiting:
        if (stage.separate or not running) and needs[stage.name].isdisjoint(undone):
            return stage
        undone.add(stage.name)
    return None


def _check_files(stages: Sequence[Stage], record: _Record) -> None:
    """Raise `InputError` if the files of stages do not fit.

    Two stages make one path, an input is missing or no plain file, or an output exists that no earlier run made.
    """
    _check_outputs(stages)
    made = {Path(path) for stage in stages for path in stage.outputs}
    for stage in stages:
        for path in map(Path, stage.inputs):
            if made.isdisjoint({path, *path.parents}) and not path.is_dir():
                check_plain(str(path))
        for path in map(Path, stage.outputs):
            if not record.owns(stage, str(path)) and os.path.lexists(path):
                raise InputError(f"{path}: already exists and is not from an earlier run. Remove or rename it")


def folder_stage(
    name: str,
    inputs: Sequence[str],
    settings: Any,
    folder: str,
    make: Callable[[str], object],
    separate: bool = False,
    work: Work | None = None,
) -> Stage:
    """Return a stage that makes a folder by `make_or_resume`."""
    action = partial(make_or_resume, folder, list(filter(None, inputs)), settings, make)
    return Stage(name, inputs, settings, (folder,), action, separate, work)


def make_or_resume(folder: str, inputs: Sequence[str], settings: Any, make: Callable[[str], object]) -> None:
    """Make the folder of a stage in a temporary folder, then move it to its final path.

    An older folder at the final path stays until then. A killed run with the same inputs and settings is resumed:
    `make` starts or finishes the temporary folder. Those of other inputs or settings are removed. A finished folder is
    recognized by the digests of its files, even at its final path, in case the run was killed before it updated the
    record. `Stage.clear` removes these digests.

    Args:
        folder: final path.
        inputs: paths that the stage reads.
        settings: other values that determine the result.
        make: function that makes the folder at a given path, or finishes it.
    """
    final = Path(folder)
    fingerprint = hashlib.sha256(json.dumps(_fingerprint(inputs, settings)).encode()).hexdigest()[:12]
    temporary = final.with_name(f"{hidden(final.name)}.training-{fingerprint}")
    new = temporary / final.name
    before = temporary / ".before"
    finished = temporary / ".finished"
    links = any(path.is_symlink() for path in (temporary, new, finished))
    for other in trainings_of(final):
        if links or other != temporary:
            remove(other)
    digests = finished.read_bytes() if finished.is_file() else b""
    if digests and digests == _as_json(_digest(final)):
        return
    if not digests or digests != _as_json(_digest(new)):
        make(str(new))
        with open_output(str(finished)) as stream:
            stream.write(_as_json(_digest(new)))
    if final.is_dir():
        with locked_with_contents(final):  # another process may be training in the old folder
            final.rename(before)
    new.rename(final)
    if before.exists():
        remove(before)


def trainings_of(folder: Path) -> list[Path]:
    """Return the temporary folders of trainings, one for each combination of settings and inputs."""
    return list(folder.parent.glob(f"{glob.escape(hidden(folder.name))}.training-*"))
