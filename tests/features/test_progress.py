import pytest

from features import progress


def test_a_process_among_others_says_its_name_once(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    monkeypatch.setattr(progress, "_speaker", "")
    for speaker in ("", "train backward"):
        if speaker:
            progress.speak_as(speaker)
        with progress.progress_shown(), progress.progress_bar("train backward", 3) as bar:
            bar.advance(1, "at ease")
    assert capfd.readouterr().err == "train backward: 1 of 3 at ease\n" * 2


def test_nothing_is_told_unless_progress_is_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    with progress.progress_shown():
        progress.note("one")
        progress.warn("two")
    with progress.progress_bar("train", 3) as bar:
        bar.advance(1, "at ease")
    progress.note("three")
    with pytest.warns(UserWarning, match=r"^four\\x1b$"):
        progress.warn("four\x1b")
    assert capfd.readouterr().err == "one\nwarning: two\n"


def test_a_command_shows_progress_and_leaves_it_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    from rerank.cli import main

    with pytest.raises(SystemExit):
        main(["--help"])
    assert not progress.shows_progress()
