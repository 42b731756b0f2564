"""Selection of sentences from a monolingual text."""

import tracemalloc
from pathlib import Path

import pytest

from features.monolingual import MAX_SENTENCE_LENGTH, Selection, check_language
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines


def text(path: Path, content: str, most: int = 100, excluded: tuple[str, ...] = ()) -> list[str]:
    path.write_text(content)
    Selection(most, excluded).write(str(path), f"{path}.selected.gz")
    return read_lines(f"{path}.selected.gz")


def test_empty_and_long_sentences_are_left_out(tmp_path: Path) -> None:
    longest, too_long = " ".join("a" * MAX_SENTENCE_LENGTH), " ".join("b" * (MAX_SENTENCE_LENGTH + 1))
    assert text(tmp_path / "mono", f"a\n\n  \n{longest}\n{too_long}\nb\ta\n") == ["a", longest, "b a"]


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


@pytest.mark.parametrize("content", ["", "\n\n", "a " * (MAX_SENTENCE_LENGTH + 1) + "\n"])
def test_a_text_without_sentences_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"mono: no sentence of 1 to 80 words that is not a reference$"):
        text(tmp_path / "mono", content)


def test_the_sentences_closest_to_the_domain_are_used(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("the cat sleeps\nthe dog sleeps\nthe cat runs\nthe dog runs\n")
    content = "stocks fell again\nthe cow runs\nprices rose again\nthe cow sleeps\nstocks rose\n"
    (tmp_path / "mono").write_text(content)
    selection = Selection(2, domain=str(tmp_path / "domain"))
    selection.write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["the cow runs", "the cow sleeps"]


def test_duplicates_and_sentences_of_the_domain_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("the cat sleeps\nthe dog sleeps\n")
    (tmp_path / "mono").write_text("the cow sleeps\nthe cat sleeps\nthe cow sleeps\nstocks fell\n")
    Selection(2, domain=str(tmp_path / "domain")).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["the cow sleeps", "stocks fell"]


def test_the_statistics_of_a_sorted_text_cover_all_of_it(tmp_path: Path) -> None:
    """Only a sample of the text is counted, and it must be spread over the whole text."""
    (tmp_path / "domain").write_text("a b\na b c\n")
    parts = [f"{word} {number}\n" for word in ("x", "y", "z") for number in range(40)]
    (tmp_path / "mono").write_text("".join([*parts[:60], "a b 1\n", *parts[60:]]))
    Selection(2, domain=str(tmp_path / "domain")).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert "a b 1" in read_lines(str(tmp_path / "selected"))


def test_only_a_sample_of_a_very_long_text_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("features.monolingual.COMPARED_PER_SENTENCE", 2)
    (tmp_path / "domain").write_text("1 2 3\n")
    (tmp_path / "mono").write_text("".join(f"{number}\n" for number in range(8)))
    Selection(2, domain=str(tmp_path / "domain")).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert len(set(read_lines(str(tmp_path / "selected"))) & {"1", "3", "5", "7"}) == 2


def test_an_empty_domain_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("\n")
    (tmp_path / "mono").write_text("a\nb\n")
    Selection(1, domain=str(tmp_path / "domain")).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["b"]


def test_a_text_of_a_similar_language_is_accepted(tmp_path: Path) -> None:
    for name, content in (("source", "a b c\n"), ("target", "a b d\n"), ("mono", "a b c a b d a b\n")):
        (tmp_path / name).write_text(content)
    corpus = ParallelFiles(source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    check_language(str(tmp_path / "mono"), corpus)
    (tmp_path / "mono").write_text("c c c\n")
    with pytest.raises(InputError, match=r"but 100 % of its words occur in .*source and 0 % in .*target$"):
        check_language(str(tmp_path / "mono"), corpus)


def test_a_short_text_is_used_completely(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("a b\n")
    (tmp_path / "mono").write_text("c d\na b\n")
    Selection(2, domain=str(tmp_path / "domain")).write(str(tmp_path / "mono"), str(tmp_path / "selected"))
    assert read_lines(str(tmp_path / "selected")) == ["c d", "a b"]


@pytest.mark.slow
def test_a_long_text_is_not_held_in_memory(tmp_path: Path) -> None:
    """A text of 5 MB needs less than a quarter of its size in memory."""
    (tmp_path / "domain").write_text("the cat sat on the mat\nthe dog sat on the cat\n")
    with open(tmp_path / "mono", "w") as stream:
        stream.writelines(f"{number} {'the cat sat on the mat ' * 12}\n" for number in range(18_000))
    selection = Selection(5, domain=str(tmp_path / "domain"))
    tracemalloc.start()
    try:
        selection.write(str(tmp_path / "mono"), str(tmp_path / "selected"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "mono").stat().st_size > 5_000_000 > 4 * peak
    assert len(read_lines(str(tmp_path / "selected"))) == 5
