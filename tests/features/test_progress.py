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
        with progress.progress_bar("train backward", 3) as bar:
            bar.advance(1, "at ease")
    assert capfd.readouterr().err == "train backward: 1 of 3 at ease\n" * 2
