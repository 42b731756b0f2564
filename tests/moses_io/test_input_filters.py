"""Subwords of lists, texts and alignments are joined before anything is computed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.files.errors import InputError
from moses_io.files.text import tokens
from moses_io.input_filters import NAMES, InputFilters
from moses_io.nbest import MosesOutput, read_nbest

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize(
    ("name", "text", "joined", "indices"),
    [
        ("debpe", "ein gro@@ ß@@ es haus", "ein großes haus", [0, 1, 1, 1, 2]),
        ("debpe", "am ende@@", "am ende", [0, 1]),
        ("desentencepiece", "▁ein ▁groß es ▁haus", "ein großes haus", [0, 1, 1, 2]),
        ("desentencepiece", "ein haus", "ein haus", [0, 1]),
        ("desentencepiece", "▁haus ▁", "haus", [0, 0]),
        ("desentencepiece", "▁", "", [-1]),
        ("dejoiner", "ein haus ￭.", "ein haus.", [0, 1, 1]),
        ("dejoiner", "groß￭ es haus", "großes haus", [0, 0, 1]),
        ("factors", "ein|ART haus|NN", "ein haus", [0, 1]),
        ("factors,debpe", "gro@@|ADJ ß|ADJ haus|NN", "groß haus", [0, 0, 1]),
        ("debpe", "", "", []),
    ],
)
def test_each_subword_belongs_to_a_word(name: str, text: str, joined: str, indices: list[int]) -> None:
    filters = InputFilters(name)
    assert (filters(text), filters.word_indices(text)) == (joined, indices)


@given(st.sampled_from(NAMES), st.text("ab@|￭▁ ", max_size=30))
def test_indices_ascend_and_stay_inside_the_filtered_text(name: str, text: str) -> None:
    filters = InputFilters(name)
    indices, words = filters.word_indices(text), tokens(filters(text))
    assert len(indices) == len(tokens(text))
    assert indices == sorted(indices)
    assert all(-1 <= index < len(words) for index in indices)


@given(st.sampled_from(NAMES), st.text("ab@|￭▁ ", max_size=30))
def test_text_without_subwords_stays_as_it_is(name: str, text: str) -> None:
    filters = InputFilters(name)
    plain = text.translate(dict.fromkeys(map(ord, "@|￭▁")))
    assert filters(plain) == plain or name == "factors"
    assert tokens(filters(plain)) == tokens(plain)


def test_a_list_has_joined_text_and_no_alignments_of_subwords(write: Write) -> None:
    path = write("list", "0 ||| gro@@ ß ||| LM= -1 ||| -2.5 ||| 0-0 0-1 \n0 ||| a ||| LM= -2 ||| -3 |||\r\n")
    InputFilters("debpe").write_list(str(path), str(path.with_name("joined")))
    assert path.with_name("joined").read_bytes() == (
        "0 ||| groß ||| LM= -1 ||| -2.5\n0 ||| a ||| LM= -2 ||| -3\n".encode()
    )


def test_the_first_of_several_factors_keeps_alignments(write: Write) -> None:
    path = write("list", "0 ||| groß|ADJ ||| LM= -1 ||| -2.5 ||| 0-0\n")
    InputFilters("factors").write_list(str(path), str(path.with_name("joined")))
    assert path.with_name("joined").read_text() == "0 ||| groß ||| LM= -1 ||| -2.5 ||| 0-0\n"


def test_a_list_is_joined_while_it_is_read(write: Write) -> None:
    path = write("list", "0 ||| gro@@ ß ||| LM= -1 ||| -2.5\n1 ||| ein haus ||| LM= -1 ||| -1\n")
    texts = [each.hypotheses[0].text for each in InputFilters("debpe").filter_lists(read_nbest(str(path)))]
    assert texts == ["groß", "ein haus"]


def test_the_output_of_moses_is_joined() -> None:
    output = InputFilters("debpe").filter_output(MosesOutput("out", ["gro@@ ß", ""]))
    assert output.lines == ["groß", ""]


def test_parts_of_the_separator_are_an_error(write: Write) -> None:
    path = write("list", "0 ||| a ||| LM= -1 ||| -1\n0 ||| |@@ |@@ | ||| LM= -1 ||| -1\n")
    with pytest.raises(InputError, match=r"list:2: the filter debpe makes the separator '\|\|\|' of parts"):
        list(InputFilters("debpe").filter_lists(read_nbest(str(path))))


def test_links_are_those_of_the_words(write: Write) -> None:
    source, target = write("source", "das gro@@ ße haus\n▁\n"), write("target", "the b@@ ig house\n▁\n")
    links = write("links", "0-0 1-1 1-2 2-1 3-3\n0-0\n")
    output = links.with_name("joined")
    InputFilters("debpe,desentencepiece").write_alignment(str(links), str(source), str(target), str(output))
    assert output.read_text() == "0-0 1-1 2-2\n\n"


def test_a_link_beyond_the_subwords_is_an_error(write: Write) -> None:
    source, target, links = write("source", "gro@@ ß\n"), write("target", "big\n"), write("links", "2-0\n")
    with pytest.raises(InputError, match="links:1: the link 2-0 is outside a sentence pair of 2 and 1 words"):
        InputFilters("debpe").write_alignment(str(links), str(source), str(target), str(links.with_name("joined")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bpe", "input_filter: unknown filter 'bpe'"),
        ("detruecase", "input_filter: expected factors, debpe, desentencepiece, dejoiner, found 'detruecase'"),
        (3, "input_filter: filter: expected names such as"),
    ],
)
def test_a_wrong_filter_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InputFilters(text)
