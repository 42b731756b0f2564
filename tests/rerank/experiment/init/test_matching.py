from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.experiment.init import matching
from rerank.experiment.init.matching import (
    Text,
    Words,
    count_words,
    coverage,
    is_translation,
    length_correlation,
    read_list,
    read_text,
    read_unigrams,
)

Write = Callable[[str, "str | bytes"], Path]

LIST = """\
0 ||| a b c ||| LM0= -1 T= 1 2 ||| -1
0 ||| a ||| LM0= -1 T= 1 2 ||| -2
3 ||| b  b a ||| LM0= -1 T= 1 2 ||| -1
4 |||  ||| LM0= -1 T= 1 2 ||| -1
"""


@pytest.mark.parametrize(("marked", "name"), [("das|DET haus|N", "factors"), ("da@@ s haus", "debpe")])
def test_factors_and_subwords_match_words(write: Write, marked: str, name: str) -> None:
    content = read_list(str(write("list", f"0 ||| {marked} ||| LM0= -1 ||| -1\n")))
    assert content.input_filter == name
    assert coverage(content.words, set(count_words(str(write("text", "das haus\n"))))) == 1
    assert is_translation(content, read_text(str(write("same", "das haus\n"))))


def test_statistics_of_an_nbest_list(write: Write) -> None:
    content = read_list(str(write("list", LIST)))
    assert content.sentences.tolist() == [0, 3, 4]
    assert content.lengths.tolist() == [2, 3, 0]
    assert content.words == {"a": 2, "b": 3, "c": 1}
    assert content.space.dense == (("LM0", 1), ("T", 2))
    assert content.lines == 5


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x x", "", "", "x x x", ""], 1),
        (["", "x", "x", "", "x x"], -5 / 28**0.5),  # lengths less their means: (1, 4, -5) / 3 and (-2, -2, 4) / 3
        (["x", "", "", "x", "x"], 0),
        (["x x x x x", "y", "z", "x x x x x x", "x x x", "more"], 1),
    ],
)
def test_length_correlation_compares_sentence_lengths(write: Write, lines: list[str], expected: float) -> None:
    """Lines of sentences without candidates, and lines after the last sentence of the list, are ignored."""
    text = read_text(str(write("text", "".join(f"{line}\n" for line in lines))))
    assert text.lines == len(lines)
    assert length_correlation(read_list(str(write("list", LIST))), text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a  b c ", "x", "", "b b a", ""], True),
        (["a", "", "", "b b a", "", "more"], True),
        (["a", "", "", "a b b", ""], False),
        (["a", "", "", "a", ""], False),
        (["a", "", "", "b b a", "a"], False),
    ],
)
def test_a_translation_has_a_candidate_for_each_sentence(write: Write, lines: list[str], expected: bool) -> None:
    text = read_text(str(write("text", "".join(f"{line}\n" for line in lines))))
    assert is_translation(read_list(str(write("list", LIST))), text) == expected


def test_only_words_of_the_first_lines_are_counted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only spaces and tabs separate words."""
    monkeypatch.setattr(matching, "SAMPLE_SIZE", 2)
    path = str(write("text", "a b\u00a0c\ta\nb\nc\n"))
    assert count_words(path) == {"a": 2, "b\u00a0c": 1, "b": 1}
    assert read_text(path) == Text(path, 3)


def test_coverage_is_the_fraction_of_known_words() -> None:
    assert coverage(Words({"a": 3, "b": 1}), {"a", "c"}) == 0.75
    assert coverage(Words(), {"a"}) == 0


def test_most_frequent_words_of_a_model(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the 1-grams are read."""
    unigrams = "-1\ta\t-0.3\n-99\t<s>\t-1\n-0.5 b\n-2\tc\n-inf\td\n"
    arpa = f"\n\\data\\\nngram 1=5\nngram 2=1\n\n\\1-grams:\n{unigrams}\n\\2-grams:\n-0.1\ta b\n\\end\\\n"
    path = str(write("arpa", arpa))
    assert read_unigrams(path) == {"a", "b", "c", "<s>"}
    monkeypatch.setattr(matching, "SAMPLE_SIZE", 2)
    assert read_unigrams(path) == {"a", "b"}
