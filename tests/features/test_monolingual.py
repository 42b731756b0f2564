"""Which sentences of a monolingual text are used."""

from pathlib import Path

import pytest

from features.monolingual import Selection
from moses_io.files.errors import InputError
from moses_io.files.text import read_lines


def text(path: Path, content: str, most: int = 100, longest: int = 3, excluded: tuple[str, ...] = ()) -> list[str]:
    path.write_text(content)
    Selection(most, longest, excluded).write(str(path), f"{path}.selected.gz")
    return read_lines(f"{path}.selected.gz")


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


def test_a_reference_does_not_change_the_other_sentences(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text("3\n4\n")
    content = "".join(f"{number}\n" for number in range(10))
    excluded = (str(tmp_path / "dev"),)
    assert text(tmp_path / "mono", content, most=5, excluded=excluded) == ["1", "5", "7", "9"]


@pytest.mark.parametrize("content", ["", "\n\n", "a b c d\n"])
def test_a_text_without_sentences_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"mono: no sentence of 1 to 3 words that is not a reference$"):
        text(tmp_path / "mono", content)


def test_the_sentences_nearest_to_the_domain_are_used(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("the cat sleeps\nthe dog sleeps\nthe cat runs\nthe dog runs\n")
    content = "stocks fell again\nthe dog runs\nprices rose again\nthe cow sleeps\nstocks rose\n"
    (tmp_path / "mono").write_text(content)
    selection = Selection(2, domain=(str(tmp_path / "domain"),))
    selection.write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["the dog runs", "the cow sleeps"]


def test_a_short_text_is_used_whole(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("a b\n")
    (tmp_path / "mono").write_text("c d\na b\n")
    Selection(2, domain=(str(tmp_path / "domain"),)).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["c d", "a b"]
