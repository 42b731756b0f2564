"""Input filters join subwords in lists, texts and alignments before features are computed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.files.errors import InputError
from moses_io.files.text import tokens
from moses_io.input_filters import NAMES, UNFILTERED, InputFilters
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
        ("debpe", "a@@  b c", "a b c", [0, 1, 2]),
        ("debpe", "", "", []),
        ("desentencepiece", "▁ein▁haus ▁groß", "ein haus groß", [0, 2]),
        ("desentencepiece", "ein▁ haus▁ groß▁", "ein haus groß", [0, 1, 2]),
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
def test_the_characters_of_a_token_are_in_its_word(name: str, text: str) -> None:
    filters = InputFilters(name)
    words = tokens(filters(text))
    for token, index in zip(tokens(text), filters.word_indices(text), strict=True):
        if word := re.fullmatch("[▁￭]?([ab]+)(@@)?", token):
            assert word[1] in words[index]


@given(st.sampled_from(NAMES), st.text("ab@|￭▁ ", max_size=30))
def test_text_without_subwords_does_not_change(name: str, text: str) -> None:
    filters = InputFilters(name)
    plain = text.translate(dict.fromkeys(map(ord, "@|￭▁")))
    assert filters(plain) == plain or name == "factors"
    assert tokens(filters(plain)) == tokens(plain)


def test_subwords_of_a_list_are_joined(write: Write) -> None:
    path = write("list", "0 ||| gro@@ ß ||| LM= -1 ||| -2.5\n1 ||| ein haus ||| LM= -1 ||| -1\n")
    texts = [each.hypotheses[0].text for each in InputFilters("debpe").filter_lists(read_nbest(str(path)))]
    assert texts == ["groß", "ein haus"]


def test_without_filters_a_list_keeps_its_bytes(write: Write) -> None:
    path = write("list", "0 ||| a  b  ||| LM= -1 |||  -2.5 ||| 0-0 \n")
    (sentence,) = UNFILTERED.filter_lists(read_nbest(str(path)))
    assert sentence.hypotheses[0].line == path.read_bytes()


def test_subwords_of_the_moses_output_are_joined() -> None:
    output = InputFilters("debpe").filter_output(MosesOutput("out", ["gro@@ ß", ""]))
    assert output.lines == ["groß", ""]


def test_a_separator_made_by_the_filter_is_an_error(write: Write) -> None:
    path = write("list", "0 ||| a ||| LM= -1 ||| -1\n0 ||| |@@ |@@ | ||| LM= -1 ||| -1\n")
    with pytest.raises(InputError, match=r"list:2: the filter debpe makes the separator '\|\|\|' of parts"):
        list(InputFilters("debpe").filter_lists(read_nbest(str(path))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bpe", r"input_filter: unknown filter 'bpe'. Did you mean 'debpe'\?"),
        (
            "detruecase",
            "input_filter: expected factors, debpe, desentencepiece, dejoiner, .* found 'detruecase', which",
        ),
        ("detokenise", "input_filter: unknown filter 'detokenise'. Known: factors, debpe, desentencepiece, dejoiner"),
        (["debpe"], "input_filter: expected factors, debpe, desentencepiece, dejoiner, .* found "),
    ],
)
def test_a_wrong_filter_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InputFilters(text)
