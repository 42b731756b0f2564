import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.experiment.stages import Stage, run_stages


def copy(name: str, source: Path, target: Path, settings: object = None) -> Stage:
    def action() -> None:
        target.write_bytes(source.read_bytes())

    return Stage(name, (str(source),), settings, (str(target),), action)


def done(stages: list[Stage], record: Path) -> list[str]:
    """Run stages, and return the names of those that were done."""
    names = []

    def act(stage: Stage) -> None:
        stage.action()
        names.append(stage.name)

    run_stages([replace(stage, action=partial(act, stage)) for stage in stages], record)
    return names


def test_only_what_changed_is_done_again(tmp_path: Path) -> None:
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
    record.write_text("{")
    with pytest.raises(InputError, match="record: cannot be read; remove the folder of results"):
        run_stages(stages, record)


def test_stages_before_a_failure_are_kept(tmp_path: Path) -> None:
    a, b, record = tmp_path / "a", tmp_path / "b", tmp_path / "record"
    a.write_text("1")

    def fail() -> None:
        raise KeyboardInterrupt

    stages = [copy("one", a, b), Stage("two", (str(b),), None, (str(tmp_path / "c"),), fail)]
    with pytest.raises(KeyboardInterrupt):
        run_stages(stages, record)
    assert done([stages[0], copy("two", b, tmp_path / "c")], record) == ["two"]


def make(target: Path, fails: bool) -> None:
    """Write a file, or fail when the file of the other stage is there."""
    if not fails:
        target.write_text("made")
        time.sleep(60)
    while not target.with_name("first").exists():
        time.sleep(0.05)
    raise InputError("no luck")


def test_what_was_made_but_not_recorded_is_made_again(tmp_path: Path) -> None:
    a, record = tmp_path / "a", tmp_path / "record"
    a.write_text("1")
    stages = [
        Stage(
            name, (str(a),), None, (str(tmp_path / name),), partial(make, tmp_path / name, name == "second"), apart=True
        )
        for name in ("first", "second")
    ]
    with pytest.raises(InputError, match="second: no luck"):
        run_stages(stages, record, jobs=2)
    assert (tmp_path / "first").exists()
    assert done([copy("first", a, tmp_path / "first")], record) == ["first"]


def test_what_is_not_of_an_earlier_run_is_left_alone(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    folder.mkdir()
    for _ in range(2):
        with pytest.raises(InputError, match="model: this is there already and not of an earlier run"):
            run_stages([train(a, folder, 1)], record)
    folder.rmdir()
    for settings in (1, 2):
        assert done([train(a, folder, settings)], record) == ["train"]
    assert (folder / "weights").read_text() == "2"


def test_a_folder_stays_until_its_successor_is_there(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    run_stages([train(a, folder, 1)], record)
    with pytest.raises(KeyboardInterrupt):
        run_stages([train(a, folder, 2, fails=True)], record)
    assert (folder / "weights").read_text() == "1"
    assert done([train(a, folder, 1)], record) == []
    assert {path.name for path in tmp_path.iterdir()} == {"a", "model", "record"}


def test_a_folder_comes_back_after_a_run_that_was_killed(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    run_stages([train(a, folder, 1)], record)
    folder.rename(tmp_path / ".model.before")
    folder.mkdir()
    (folder / "weights").write_text("half")
    assert done([train(a, folder, 1)], record) == []
    assert (folder / "weights").read_text() == "1"


def test_a_folder_that_was_moved_is_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_text("1")
    names = ("a", "model", "record")
    a, folder, record = (tmp_path / "x" / name for name in names)
    run_stages([train(a, folder, 1)], record)
    (tmp_path / "x").rename(tmp_path / "y")
    a, folder, record = (tmp_path / "y" / name for name in names)
    assert done([train(a, folder, 1)], record) == []


def train(source: Path, folder: Path, settings: int, fails: bool = False) -> Stage:
    def action() -> None:
        folder.mkdir()
        (folder / "weights").write_text(str(settings))
        if fails:
            raise KeyboardInterrupt

    return Stage("train", (str(source),), settings, (str(folder),), action)


def test_a_missing_input_is_told_before_anything_is_done(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    with pytest.raises(InputError, match="nowhere: No such file"):
        run_stages([copy("one", a, b), copy("two", tmp_path / "nowhere", b)], tmp_path / "record")
    assert not b.exists()
