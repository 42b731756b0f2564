"""Back-translation, including interrupted runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from features.feature import Resources
from features.models.decoding import backtranslation
from features.models.decoding.backtranslation import back_translate
from features.models.decoding.search import Beam
from features.models.decoding.translator import Replacement, Translation, Translator
from moses_io.files.text import read_lines, tokens

CPU = Resources("cpu")


@pytest.fixture
def text(tmp_path: Path, sample: Path) -> str:
    """A text of 50 lines, including an empty line."""
    lines = read_lines(str(sample / "train.en"))[:49]
    (tmp_path / "mono").write_text("".join(f"{line}\n" for line in [*lines, ""]))
    return str(tmp_path / "mono")


def test_lines_are_greedy_translations(models: dict[str, Path], text: str, tmp_path: Path) -> None:
    model = str(models["backward"])
    back_translate(model, text, str(tmp_path / "out"), CPU)
    translator = Translator([model], Beam(1), Replacement("copy", backward=True), CPU, backward=True)
    sentences = [tuple(tokens(line)) for line in read_lines(text)]
    assert read_lines(str(tmp_path / "out")) == [" ".join(best.tokens) for best, *_ in translator.translate(sentences)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono", "out"]


@pytest.mark.parametrize("killed_at", [0, 1, 9, 27])
def test_an_interrupted_translation_continues(
    killed_at: int, models: dict[str, Path], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It continues after the last complete block, and the output is identical."""
    monkeypatch.setattr(backtranslation, "BLOCK", 8)
    whole, output, model = tmp_path / "whole", tmp_path / "out", str(models["backward"])
    back_translate(model, text, str(whole), CPU)
    translate, count = Translator.translate, 0

    def until(self: Translator, sources: Sequence[tuple[str, ...]], done: Any) -> Iterator[list[Translation]]:
        nonlocal count
        for translations in translate(self, sources, done):
            if count == killed_at:
                raise KeyboardInterrupt
            count += 1
            yield translations

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Translator, "translate", until)
        back_translate(model, text, str(output), CPU)
    assert not output.exists()
    seen: list[int] = []

    def counted(self: Translator, sources: Sequence[tuple[str, ...]], done: Any) -> Iterator[list[Translation]]:
        seen.append(len(sources))
        return translate(self, sources, done)

    monkeypatch.setattr(Translator, "translate", counted)
    back_translate(model, text, str(output), CPU)
    assert sum(seen) == 50 - killed_at // 8 * 8
    assert output.read_bytes() == whole.read_bytes()


def test_translations_of_another_text_are_not_continued(
    models: dict[str, Path], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupted file has as many translations as the new text has lines."""
    monkeypatch.setattr(backtranslation, "BLOCK", 8)
    model, output, begun = str(models["backward"]), tmp_path / "out", tmp_path / ".out.begun"
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(backtranslation, "open_output", full)
        back_translate(model, text, str(output), CPU)
    assert begun.read_bytes().count(b"\n") == 51
    Path(text).write_text("a man .\n" * 50)
    back_translate(model, text, str(output), CPU)
    assert len(set(read_lines(str(output)))) == 1 and not begun.exists()


def full(path: str) -> Any:
    raise OSError(f"{path}: full")
