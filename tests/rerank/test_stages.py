from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.stages import Stage, run_stages


def copy(name: str, source: Path, target: Path, settings: object = None) -> Stage:
    def action() -> None:
        target.write_bytes(source.read_bytes())

    return Stage(name, (source,), settings, (target,), action)


def test_only_what_changed_is_done_again(tmp_path: Path) -> None:
    a, b, c, record = (tmp_path / name for name in ("a", "b", "c", "record"))
    a.write_text("1")
    stages = [copy("one", a, b), copy("two", b, c)]
    assert run_stages(stages, record) == ["one", "two"]
    assert run_stages(stages, record) == []
    a.write_text("2")
    assert run_stages(stages, record) == ["one", "two"]
    assert c.read_text() == "2"
    c.unlink()
    assert run_stages(stages, record) == ["two"]
    c.write_text("by hand")
    assert run_stages(stages, record) == ["two"]
    assert run_stages([stages[0], copy("two", b, c, "other")], record) == ["two"]
    record.write_text("{")
    assert run_stages(stages, record) == ["one", "two"]


def test_stages_before_a_failure_are_kept(tmp_path: Path) -> None:
    a, b, record = tmp_path / "a", tmp_path / "b", tmp_path / "record"
    a.write_text("1")

    def fail() -> None:
        raise KeyboardInterrupt

    stages = [copy("one", a, b), Stage("two", (b,), None, (tmp_path / "c",), fail)]
    with pytest.raises(KeyboardInterrupt):
        run_stages(stages, record)
    assert run_stages([stages[0], copy("two", b, tmp_path / "c")], record) == ["two"]


def test_a_folder_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    a, folder, record = tmp_path / "a", tmp_path / "model", tmp_path / "record"
    a.write_text("1")
    folder.mkdir()
    (folder / "thesis.tex").write_text("")

    def action() -> None:
        folder.mkdir()
        (folder / "weights").write_text("")

    for settings in (1, 2):
        with pytest.raises(InputError, match="the folder is not empty and not of an earlier run"):
            run_stages([Stage("train", (a,), settings, (folder,), action)], record)
    (folder / "thesis.tex").unlink()
    folder.rmdir()
    for settings in (1, 2):
        assert run_stages([Stage("train", (a,), settings, (folder,), action)], record) == ["train"]


def test_a_missing_input_is_told_before_anything_is_done(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    with pytest.raises(InputError, match="nowhere: No such file"):
        run_stages([copy("one", a, b), copy("two", tmp_path / "nowhere", b)], tmp_path / "record")
    assert not b.exists()
