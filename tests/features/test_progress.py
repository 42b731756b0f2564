import io
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from features import progress


def test_lines_of_a_worker_process_have_its_task_name_once(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL", -1.0)
    monkeypatch.setattr(progress._lines, "task", "")
    for name in ("", "train backward"):
        if name:
            progress.name_task(name)
        with progress.progress_shown(), progress.progress_bar("train backward", 3) as bar:
            bar.advance(1, "at ease")
    assert capfd.readouterr().err == "train backward: 1 of 3 at ease\n" * 2


def test_control_characters_in_a_task_name_are_escaped(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress._lines, "task", "")
    progress.name_task("train \x1b[31m")
    with progress.progress_shown():
        progress.log.info("one")
    assert capfd.readouterr().err == "train \\x1b[31m: one\n"


def test_messages_are_printed_only_while_progress_is_shown(
    warned: Callable[[str], AbstractContextManager[None]],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL", -1.0)
    with progress.progress_shown():
        progress.log.info("one")
        progress.log.warning("two")
    with progress.progress_bar("train", 3) as bar:
        bar.advance(1, "at ease")
    progress.log.info("three")
    with warned(r"^four\\x1b$"):
        progress.log.warning("four\x1b")
    assert capfd.readouterr().err == "one\nwarning: two\n"


def test_a_command_turns_progress_off_at_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    from rerank.cli import main

    with pytest.raises(SystemExit):
        main(["--help"])
    assert not progress.shows_progress()


def test_a_command_restores_the_configuration_of_the_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.log, "propagate", False)
    before = progress.log.level
    progress.log.setLevel(logging.ERROR)
    with progress.progress_shown():
        assert progress.log.level == logging.INFO
    configured = (progress.log.level, progress.log.propagate)
    progress.log.setLevel(before)
    assert configured == (logging.ERROR, False)


class Screen(io.StringIO):
    """An output stream that reports to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("progress")
def test_nested_bars_are_displayed_below_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress_bar("tune", None):
        for number in progress.with_bar("folds", range(2), 2):
            bar = progress._open[-1].progress
            assert [(task.description, task.fields["note"]) for task in bar.tasks] == [("tune", ""), ("folds", "")]
            if number:
                progress.log.info("a line")
                bar.refresh()
        assert [task.description for task in bar.tasks if task.visible] == ["tune"]
    drawn = screen.getvalue()
    assert "1/2" in drawn and "0/?" not in drawn and drawn.count("a line") == 1


@pytest.mark.usefixtures("progress")
def test_control_characters_in_a_bar_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    steering = "\x1b]0;owned\x07\x9b2J\u202e\n"
    with progress.progress_bar(f"[red]bar{steering}", 2) as bar:
        bar.progress.refresh()
        bar.set_status(f"[/] words{steering}")
        bar.progress.refresh()
    drawn = screen.getvalue()
    assert not any(each in drawn for each in ("\x1b]0", "\x07", "\x9b", "\u202e"))
    shown = r"\x1b]0;owned\x07\x9b2J\u202e\n"
    assert all(f"{text}{shown}" in drawn for text in ("[red]bar", "[/] words"))


def test_only_bars_of_whole_stages_report_a_fraction() -> None:
    reported: list[progress.Done | None] = []
    with progress.watched(reported.append):
        with progress.progress_bar("train", 4, 1, whole=True) as bar:
            bar.advance(1, "", stored=True)
            bar.advance(1, "")
        with progress.progress_bar("read", 4) as bar:
            bar.advance(2, "")
    with progress.progress_bar("train", 4, whole=True) as bar:
        bar.advance(2, "")
    assert reported == [(0.25, 0.25), (0.5, 0.5), (0.75, 0.5), None, None]


@pytest.mark.usefixtures("progress")
def test_only_the_outermost_bar_of_a_run_shows_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    outer, inner = progress.progress_bar("[1/2] train", None), progress.progress_bar("train", 100)
    with progress.watched(lambda _: None), outer, inner as bar:
        bar.advance(50, "")
        progress.show_time_left("about 5 min left in total")
        bar.progress.refresh()
        notes = [task.fields["note"] for task in bar.progress.tasks]
    assert notes == ["about 5 min left in total", ""]
    assert "-:--:--" not in screen.getvalue()
    with progress.progress_bar("train", 100) as bar:
        bar.progress.refresh()
    assert "-:--:--" in screen.getvalue()
