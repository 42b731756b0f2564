"""Back-translation: which sentences are translated, and interrupted translations."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from features.feature import Resources
from features.models.decoding import backtranslation
from features.models.decoding.backtranslation import back_translate
from features.models.decoding.search import Beam
from features.models.decoding.translator import Replacement, Translation, Translator
from features.monolingual import MonolingualText
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines, tokens

CPU = Resources("cpu")


def text(path: Path, content: str, most: int = 100, longest: int = 3, excluded: tuple[str, ...] = ()) -> list[str]:
    path.write_text(content)
    return [" ".join(sentence) for sentence in MonolingualText(str(path), most, longest, excluded).sentences()]


def test_empty_and_long_sentences_are_left_out(tmp_path: Path) -> None:
    assert text(tmp_path / "mono", "a\n\n  \na b c\na b c d\nb\ta\n") == ["a", "a b c", "b a"]


def test_sentences_are_evenly_spaced(tmp_path: Path) -> None:
    content = "".join(f"{number}\n\n" for number in range(10))
    assert text(tmp_path / "mono", content, most=5) == ["1", "3", "5", "7", "9"]
    assert text(tmp_path / "mono", content, most=1) == ["9"]
    assert len(text(tmp_path / "mono", content, most=7)) == 7


def test_references_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "dev").write_text("a  b\nd\n")
    caplog.set_level("INFO")
    assert text(tmp_path / "mono", "a b\nc\nd\na b\n", excluded=(str(tmp_path / "dev"),)) == ["c"]
    assert "mono: 3 sentences also among the references, left out" in caplog.text


@pytest.mark.parametrize("content", ["", "\n\n", "a b c d\n"])
def test_a_text_without_sentences_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"mono: no sentence of 1 to 3 words that is not a reference$"):
        text(tmp_path / "mono", content)


@pytest.fixture
def monolingual(tmp_path: Path, sample: Path) -> MonolingualText:
    lines = read_lines(str(sample / "train.en"))[:50]
    (tmp_path / "mono").write_text("".join(f"{line}\n" for line in lines))
    return MonolingualText(str(tmp_path / "mono"), 1000, 80)


def outputs(folder: Path, name: str) -> ParallelFiles:
    return ParallelFiles(str(folder / f"{name}.source"), str(folder / f"{name}.target"))


def test_the_source_is_the_greedy_translation(
    models: dict[str, Path], monolingual: MonolingualText, tmp_path: Path
) -> None:
    files, model = outputs(tmp_path, "one"), str(models["backward"])
    back_translate(model, monolingual, files, CPU)
    assert read_lines(files.target) == read_lines(monolingual.path)
    translator = Translator([model], Beam(1), Replacement("copy", backward=True), CPU, backward=True)
    sentences = [tuple(tokens(line)) for line in read_lines(monolingual.path)]
    assert read_lines(files.source) == [" ".join(best.tokens) for best, *_ in translator.translate(sentences)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono", "one.source", "one.target"]


@pytest.mark.parametrize("killed_at", [0, 1, 9, 27])
def test_an_interrupted_translation_continues(
    killed_at: int,
    models: dict[str, Path],
    monolingual: MonolingualText,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After its last whole block, with the same bytes."""
    monkeypatch.setattr(backtranslation, "BLOCK", 8)
    whole, files, model = outputs(tmp_path, "whole"), outputs(tmp_path, "files"), str(models["backward"])
    back_translate(model, monolingual, whole, CPU)
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
        back_translate(model, monolingual, files, CPU)
    assert not Path(files.source).exists()
    seen: list[int] = []

    def counted(self: Translator, sources: Sequence[tuple[str, ...]], done: Any) -> Iterator[list[Translation]]:
        seen.append(len(sources))
        return translate(self, sources, done)

    monkeypatch.setattr(Translator, "translate", counted)
    back_translate(model, monolingual, files, CPU)
    assert sum(seen) == 50 - killed_at // 8 * 8
    for one, other in ((files.source, whole.source), (files.target, whole.target)):
        assert Path(one).read_bytes() == Path(other).read_bytes()


def test_translations_of_another_text_are_not_continued(
    models: dict[str, Path], monolingual: MonolingualText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backtranslation, "BLOCK", 8)
    whole, files, model = outputs(tmp_path, "whole"), outputs(tmp_path, "files"), str(models["backward"])
    (tmp_path / ".files.source.begun").write_bytes(b"another\n" + 20 * b"old\n")
    back_translate(model, monolingual, whole, CPU)
    back_translate(model, monolingual, files, CPU)
    assert Path(files.source).read_bytes() == Path(whole.source).read_bytes()
