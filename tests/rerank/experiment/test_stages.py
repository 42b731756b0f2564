import importlib.util
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moses_io.files.errors import InputError
from moses_io.files.folders import InUse, locked
from moses_io.files.streams import open_output
from rerank.experiment.clock import Clock, Work
from rerank.experiment.stages import Stage, make_or_resume, run_stages


def copy(name: str, source: Path, target: Path, settings: object = None) -> Stage:
    return Stage(name, (str(source),), settings, (str(target),), partial(shutil.copyfile, source, target))


def done(stages: list[Stage], record: Path) -> list[str]:
    """Run stages and return the names of the stages that were executed."""
    names = []

    def act(stage: Stage) -> None:
        stage.action()
        names.append(stage.name)

    run_stages([replace(stage, action=partial(act, stage)) for stage in stages], record)
    return names


def test_only_changed_stages_run_again(tmp_path: Path) -> None:
    a, b, c, record = (tmp_path / name for name in ("a", "b", "c", "record"))
    a.write_text("1")
    stages = [copy("one", a, b), copy("two", b, c)]
    assert done(stages, record) == ["one", "two"]
    assert done(stages, record) == []
    a.write_text("2")
    assert done(stages, record) == ["one", "two"]
    assert c.read_text() == "2"
    c.unlink()
    assert done(stages, record) == ["two"]
    c.write_text("by hand")
    assert done(stages, record) == ["two"]
    assert done([stages[0], copy("two", b, c, "other")], record) == ["two"]


def test_a_stage_can_change_the_stages_after_it(tmp_path: Path) -> None:
    a, b, c, d, record = (tmp_path / name for name in ("a", "b", "c", "d", "record"))
    a.write_text("1")
    first, changed = copy("one", a, b), copy("one", a, b, "changed")

    def revise(stage: Stage) -> list[Stage] | None:
        return [first, copy("three", b, d)] if stage.name == "one" else None

    for _ in range(2):
        run_stages([first, copy("two", b, c)], record, revise=revise)
        assert d.exists() and not c.exists()
    run_stages([first, copy("two", b, c)], record, revise=lambda stage: [changed] if stage == first else None)
    assert done([changed], record) == [] and not c.exists()


def test_a_stage_waits_for_the_paths_in_after(tmp_path: Path) -> None:
    a, b, c, record = (tmp_path / name for name in ("a", "b", "c", "record"))
    a.write_text("1")
    late = replace(copy("late", a, c), separate=True, after=(str(b),))
    order = []
    stages = [late, replace(copy("first", a, b), separate=True)]
    run_stages(stages[::-1], record, jobs=2, revise=lambda stage: order.append(stage.name))
    assert order == ["first", "late"]


def test_another_program_version_repeats_all_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, record = (tmp_path / name for name in ("a", "b", "record"))
    a.write_text("1")
    assert done([copy("one", a, b)], record) == ["one"]
    monkeypatch.setattr("rerank.experiment.stages._VERSION", "99.0")
    assert done([copy("one", a, b)], record) == ["one"]
    assert done([copy("one", a, b)], record) == []


@pytest.mark.parametrize(
    ("version", "ran"),
    [("1.1.0", []), ("1.1.7", []), ("1.1.0.dev3", []), ("1.2.0", ["one"]), ("1.10.0", ["one"]), ("2.1.0", ["one"])],
)
def test_a_patch_version_repeats_no_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ran: list[str]
) -> None:
    """A run of version 1.1.0 is continued by another version."""
    a, b, record = (tmp_path / name for name in ("a", "b", "record"))
    a.write_text("1")
    for present, expected in (("1.1.0", ["one"]), (version, ran)):
        monkeypatch.setattr("rerank.__version__", present)
        monkeypatch.setattr("rerank.experiment.stages._VERSION", fresh_copy("rerank.experiment.stages")._VERSION)
        assert done([copy("one", a, b)], record) == expected


def fresh_copy(name: str) -> Any:
    """Return a second copy of a module, which has read the present version. The first copy does not change."""
    spec = importlib.util.find_spec(name)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_stages_with_the_same_output_are_an_error(tmp_path: Path) -> None:
    """Example: test sets named `news` (with a shortlist) and `news.all`."""
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    with pytest.raises(InputError, match=r"b: 'one' and 'two' would both write it\. Rename a test set"):
        run_stages([copy("one", a, b), copy("two", a, b)], tmp_path / "record")
    assert not b.exists()


def test_stages_before_a_failure_are_recorded(tmp_path: Path) -> None:
    a, b, record = tmp_path / "a", tmp_path / "b", tmp_path / "record"
    a.write_text("1")

    def fail() -> None:
        raise KeyboardInterrupt

    stages = [copy("one", a, b), Stage("two", (str(b),), None, (str(tmp_path / "c"),), fail)]
    with pytest.raises(KeyboardInterrupt):
        run_stages(stages, record)
    assert done([stages[0], copy("two", b, tmp_path / "c")], record) == ["two"]


def write_or_fail(target: Path, fails: bool) -> None:
    """Write the file `first` and wait, or wait for this file and fail."""
    if not fails:
        target.write_text("made")
        time.sleep(60)
    while not target.with_name("first").exists():
        time.sleep(0.05)
    raise InputError("no luck")


def test_unrecorded_output_is_made_again(tmp_path: Path) -> None:
    a, record = tmp_path / "a", tmp_path / "record"
    a.write_text("1")
    stages = [
        Stage(
            name,
            (str(a),),
            None,
            (str(tmp_path / name),),
            partial(write_or_fail, tmp_path / name, name == "second"),
            separate=True,
        )
        for name in ("first", "second")
    ]
    with pytest.raises(InputError, match="second: no luck"):
        run_stages(stages, record, jobs=2)
    assert (tmp_path / "first").exists()
    assert done([copy("first", a, tmp_path / "first")], record) == ["first"]


def test_an_existing_output_of_no_earlier_run_is_an_error(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    folder.mkdir()
    for _ in range(2):
        with pytest.raises(InputError, match="model: already exists and is not from an earlier run"):
            run_stages([train(a, folder, 1)], record)
    folder.rmdir()
    for settings in (1, 2):
        assert done([train(a, folder, settings)], record) == ["train"]
    assert (folder / "weights").read_text() == "2"


def test_a_folder_is_kept_until_its_replacement_is_complete(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    run_stages([train(a, folder, 1)], record)
    with pytest.raises(KeyboardInterrupt):
        run_stages([train(a, folder, 2, fails=True)], record)
    assert (folder / "weights").read_text() == "1"
    assert done([train(a, folder, 1)], record) == []
    assert done([train(a, folder, 3)], record) == ["train"]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "model", "record", "trainings"}


class Killed(BaseException):
    """Simulated kill of the process. No code of the run continues after it."""


class Killer:
    """Raises `Killed` after `moments` moments. There is one moment before and one after each file system operation."""

    def __init__(self, moments: int) -> None:
        self._left = moments

    def __call__(self, step: Callable[..., object], *arguments: object, **named: object) -> object:
        self._pass()
        result = step(*arguments, **named)
        self._pass()
        return result

    def _pass(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


def test_a_complete_folder_survives_a_kill_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill, the path has the old folder, the new one or nothing, never a part. Each folder is made once."""
    steps = {"rename": Path, "replace": os, "unlink": os, "rmtree": shutil}
    killed, moments = True, 0
    while killed:
        folder = tmp_path / str(moments)
        a, model, record = folder / "a", folder / "model", folder / "record"
        folder.mkdir()
        a.write_text("1")
        run_stages([train(a, model, 1)], record)
        with monkeypatch.context() as patch:
            killer = Killer(moments)
            for name, owner in steps.items():
                step = getattr(owner, name)
                patch.setattr(owner, name, lambda *a, step=step, killer=killer, **b: killer(step, *a, **b))
            try:
                run_stages([train(a, model, 2)], record)
                killed = False
            except Killed:
                moments += 1
        assert not model.exists() or (model / "weights").read_text() in ("1", "2")
        run_stages([train(a, model, 2)], record)
        assert ((model / "weights").read_text(), (folder / "trainings").read_text()) == ("2", "12")
        assert done([train(a, model, 2)], record) == []
        assert {path.name for path in folder.iterdir()} == {"a", "model", "record", "trainings"}
    assert moments > 10


def test_a_moved_folder_is_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_text("1")
    names = ("a", "model", "record")
    a, folder, record = (tmp_path / "x" / name for name in names)
    run_stages([train(a, folder, 1)], record)
    (tmp_path / "x").rename(tmp_path / "y")
    a, folder, record = (tmp_path / "y" / name for name in names)
    assert done([train(a, folder, 1)], record) == []


@pytest.mark.parametrize("name", [".DS_Store", ".cache/x", "README.md"])
def test_hidden_files_and_readme_files_do_not_matter(tmp_path: Path, name: str) -> None:
    """File managers and network file systems add hidden files. Users edit the README of a reranker."""
    a, folder, record = (tmp_path / path for path in ("a", "model", "record"))
    a.write_text("1")
    run_stages([train(a, folder, 1)], record)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert done([train(a, folder, 1)], record) == []
    (folder / "other").write_text("x")
    assert done([train(a, folder, 1)], record) == ["train"]


def test_a_link_to_a_moved_folder_is_made_again(tmp_path: Path) -> None:
    def link(path: Path) -> Stage:
        def action() -> None:
            shutil.rmtree(path / "linked", ignore_errors=True)
            (path / "linked").mkdir()
            (path / "linked" / "model").symlink_to(path / "model")

        return Stage("link", (str(path / "model"),), None, (str(path / "linked"),), action)

    (tmp_path / "x" / "model").mkdir(parents=True)
    (tmp_path / "x" / "model" / "weights").write_text("1")
    for expected in (["link"], []):
        assert done([link(tmp_path / "x")], tmp_path / "x" / "record") == expected
    (tmp_path / "x").rename(tmp_path / "y")
    for expected in (["link"], []):
        assert done([link(tmp_path / "y")], tmp_path / "y" / "record") == expected
    assert (tmp_path / "y" / "linked" / "model" / "weights").read_text() == "1"


def train(source: Path, folder: Path, settings: int, fails: bool = False) -> Stage:
    """Make a folder at a temporary path, and append `settings` to the file `trainings` each time."""

    def make(path: str) -> None:
        weights = Path(path) / "weights"
        if weights.exists():
            return
        weights.parent.mkdir(parents=True)
        if fails:
            raise KeyboardInterrupt
        weights.write_text(str(settings))
        with folder.with_name("trainings").open("a") as trainings:
            trainings.write(str(settings))

    action = partial(make_or_resume, str(folder), (str(source),), settings, make)
    return Stage("train", (str(source),), settings, (str(folder),), action)


def test_a_folder_that_another_process_uses_is_not_replaced(tmp_path: Path) -> None:
    """The next run uses the new folder without making it again."""
    source, folder, record = tmp_path / "source", tmp_path / "model", tmp_path / "record"
    source.write_text("1")
    run_stages([train(source, folder, 1)], record)
    with locked(folder), pytest.raises(InUse, match="model: another process uses this folder"):
        run_stages([train(source, folder, 2)], record)
    assert (folder / "weights").read_text() == "1"
    run_stages([train(source, folder, 2)], record)
    assert (folder / "weights").read_text() == "2"
    assert (tmp_path / "trainings").read_text() == "12"


class SimulatedClock:
    """A clock that advances only with `work`."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    def work(self, source: Path, target: Path, seconds: float) -> None:
        self.time += seconds
        target.write_bytes(source.read_bytes())


@pytest.fixture
def lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, progress: None
) -> Callable[..., list[str]]:
    """Run stages with expected times of 50, 1, 16 and 9 minutes and given true seconds. Return the printed lines."""
    clock, a, record = SimulatedClock(), tmp_path / "a", tmp_path / "record"
    monkeypatch.setattr("rerank.experiment.stages.Clock", partial(Clock, now=clock))
    names, minutes = ["train one", "join", "tune", "evaluate"], (50, 1, 16, 9)
    paths = [a, *(tmp_path / name for name in names)]
    a.write_text("1")

    def run(*seconds: float) -> list[str]:
        stages = [
            Stage(
                name, (str(source),), None, (str(target),), partial(clock.work, source, target, each),
                work=Work(name, 60 * minutes),
            )
            for name, source, target, each, minutes in zip(
                names, paths[:-1], paths[1:], seconds, minutes, strict=True
            )
        ]  # fmt: skip
        run_stages(stages, record)
        return [line.partition("] ")[2] for line in capfd.readouterr().err.splitlines()]

    return run


def test_a_run_shows_stage_times_and_the_remaining_time(lines: Callable[..., list[str]]) -> None:
    assert lines(3000, 60, 960, 540) == [
        "train one (about 50 min), about 1 h 20 min left in total",
        "join (about 1 min), about 26 min left in total",
        "tune (about 16 min), about 25 min left in total",
        "evaluate (about 9 min), about 9 min left in total",
    ]


def test_stages_that_are_up_to_date_take_no_time(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    lines(0, 0, 0, 0)
    (tmp_path / "tune").unlink()
    assert lines(0, 0, 960, 540) == [
        "train one: up to date",
        "join: up to date",
        "tune (about 16 min), about 25 min left in total",
        "evaluate: up to date",
    ]


def test_stages_with_changed_inputs_are_in_the_estimate(tmp_path: Path, lines: Callable[..., list[str]]) -> None:
    lines(0, 0, 0, 0)
    (tmp_path / "a").write_text("2")
    assert lines(3000, 60, 960, 540)[0] == "train one (about 50 min), about 1 h 20 min left in total"


def test_temporary_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    a, b, record = tmp_path / "a", tmp_path / "b", tmp_path / "record"
    a.write_text("1")
    leftovers = [tmp_path / ".b.abcd1234.temporary", tmp_path / ".record.abcd1234.temporary"]
    others = [tmp_path / ".c.abcd1234.temporary", tmp_path / ".b.abcd1234"]
    for path in (*leftovers, *others):
        path.write_text("half")
    run_stages([copy("one", a, b)], record)
    assert [path.exists() for path in (*leftovers, *others)] == [False, False, True, True]


def written(name: str, source: Path, target: Path) -> Stage:
    def action() -> None:
        with open_output(str(target)) as stream:
            stream.write(source.read_bytes())

    return Stage(name, (str(source),), None, (str(target),), action)


def test_no_file_is_written_through_a_symbolic_link(tmp_path: Path) -> None:
    a, b, other, record = (tmp_path / name for name in ("a", "b", "other", "record"))
    a.write_text("1")
    other.write_text("of the user")
    b.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="b: already exists and is not from an earlier run"):
        run_stages([written("one", a, b)], record)
    b.unlink()
    run_stages([written("one", a, b)], record)
    for replaced in (lambda: b.symlink_to(other), lambda: b.symlink_to(tmp_path / "nowhere"), lambda: os.mkfifo(b)):
        b.unlink()
        replaced()
        assert done([written("one", a, b)], record) == ["one"]
        assert (b.is_symlink(), b.read_text(), other.read_text()) == (False, "1", "of the user")
    record.rename(tmp_path / "elsewhere")
    record.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="record: a symbolic link, expected a file of an earlier run"):
        run_stages([written("one", a, b)], record)
    assert not (tmp_path / "nowhere").exists()


def test_no_folder_is_made_through_a_symbolic_link(tmp_path: Path) -> None:
    a, folder, record, other = tmp_path / "a", tmp_path / "model", tmp_path / "record", tmp_path / "other"
    a.write_text("1")
    with pytest.raises(KeyboardInterrupt):
        run_stages([train(a, folder, 1, fails=True)], record)
    (temporary,) = tmp_path.glob(".model.training-*")
    temporary.rename(other)
    temporary.symlink_to(other)
    assert done([train(a, folder, 1)], record) == ["train"]
    assert (folder / "weights").read_text() == "1"
    assert [path.name for path in other.rglob("*")] == ["model"]
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert done([train(a, folder, 2)], record) == ["train"]
    assert ((tmp_path / "moved" / "weights").read_text(), folder.is_symlink()) == ("1", False)


@pytest.mark.parametrize(
    "text",
    [
        "{", "null", "[]", "3", '{"one": 3}', '{"one": null}', "[" * 100_000, '{"a":' * 100_000,
        '{"one": {"version": ' + "9" * 5000 + "}}", b"\xff",
    ],
    ids=lambda text: str(text[:12]),
)  # fmt: skip
def test_a_damaged_record_is_an_error(tmp_path: Path, text: "str | bytes") -> None:
    a, record = tmp_path / "a", tmp_path / "record"
    a.write_text("1")
    record.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=r"record.*. Remove the folder of results to repeat all stages"):
        run_stages([copy("one", a, tmp_path / "b")], record)


def test_a_pipe_as_input_or_record_is_an_error(tmp_path: Path) -> None:
    pipe, record = tmp_path / "pipe", tmp_path / "record"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="pipe: a pipe or a device, expected a plain file"):
        run_stages([copy("one", pipe, tmp_path / "b")], record)
    pipe.rename(record)
    with pytest.raises(InputError, match="record: a pipe or a device, expected a plain file"):
        run_stages([copy("one", record, tmp_path / "b")], record)


def test_missing_inputs_are_reported_before_any_stage_runs(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    with pytest.raises(InputError, match="nowhere: No such file"):
        run_stages([copy("one", a, b), copy("two", tmp_path / "nowhere", tmp_path / "c")], tmp_path / "record")
    assert not b.exists()


def test_another_stage_can_write_the_outputs_of_an_earlier_run(tmp_path: Path) -> None:
    a, b, c, record = (tmp_path / name for name in ("a", "b", "c", "record"))
    a.write_text("1")
    assert done([copy("join", a, c)], record) == ["join"]
    assert done([copy("score", a, b), copy("shorten", b, c)], record) == ["score", "shorten"]


def test_a_killed_stage_keeps_its_outputs_for_another_stage(tmp_path: Path) -> None:
    a, b, record = (tmp_path / name for name in ("a", "b", "record"))
    a.write_text("1")

    def write_half() -> None:
        b.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stages([replace(copy("join", a, b), action=write_half)], record)
    assert done([copy("shorten", a, b)], record) == ["shorten"]
    assert b.read_text() == "1"


def test_a_link_to_the_folder_that_it_is_in_is_ignored(tmp_path: Path) -> None:
    model, other, made, record = (tmp_path / name for name in ("model", "other", "made", "record"))
    for folder, linked in ((model, other), (other, model)):
        folder.mkdir()
        (folder / "weights").write_text("1")
        (folder / "itself").symlink_to(".")
        (folder / "linked").symlink_to(linked)
    stage = Stage("read", (str(model),), None, (str(made),), made.touch)
    assert done([stage], record) == ["read"]
    assert done([stage], record) == []
    (other / "weights").write_text("2")
    assert done([stage], record) == ["read"]
