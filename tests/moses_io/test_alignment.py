import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.alignment import (
    BACKWARDS,
    BEYOND_SOURCE,
    BEYOND_TRANSLATION,
    OVERLAPPING,
    Alignments,
    LinkNumbering,
    describe_field,
    fitted,
    format_links,
    printed_alignment,
    printed_phrases,
    read_alignments,
    segmentation,
    segmentation_faults,
    swapped,
)
from moses_io.files.errors import Fault, InputError
from moses_io.hypothesis import parse_line

Write = Callable[[str, "str | bytes"], Path]

LENGTHS = ([2, 1, 1], [2, 3, 0])
"""Numbers of words of three source sentences, and of their translations."""


def test_read_alignments_of_a_corpus(write: Write) -> None:
    text = "0-0 1-1 0-1\n0-2  0-0 \n\n"
    wanted = [{(0, 0), (1, 1), (0, 1)}, {(0, 2), (0, 0)}, set()]
    for content in (text, text.replace("\n", "\r\n"), gzip.compress(text.encode())):
        assert list(read_alignments(str(write("gdfa", content)), *LENGTHS)) == wanted
    assert swapped(frozenset({(0, 2), (1, 0)})) == {(2, 0), (0, 1)}


def test_links_are_written_in_order(write: Write) -> None:
    links = [frozenset({(1, 1), (0, 1), (0, 0)}), frozenset({(0, 2)}), frozenset[tuple[int, int]]()]
    text = "".join(f"{format_links(each)}\n" for each in links)
    assert text == "0-0 0-1 1-1\n0-2\n\n"
    assert list(read_alignments(str(write("gdfa", text)), *LENGTHS)) == links


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0-0 x\n\n", "gdfa:2: expected links such as '0-0 1-2', found '0-0 x'"),
        ("0-0\n0--1\n\n", "gdfa:2: expected links such as '0-0 1-2', found '0--1'"),
        ("0-0\n0-0 ||| -3.5\n\n", "gdfa:2: expected links such as"),
        ("0-0\n0-2 0-3\n\n", "gdfa:2: the link 0-3 is outside a sentence pair of 1 and 3 words"),
        ("2-0\n\n\n", "gdfa:1: the link 2-0 is outside a sentence pair of 2 and 2 words"),
        ("0-0\n\n0-0\n", "gdfa:3: the link 0-0 is outside a sentence pair of 1 and 0 words"),
        ("0-0\n\n", "gdfa has 2 lines, the corpus has 3"),
        ("", "gdfa has 0 lines, the corpus has 3"),
        ("\n\n\n\n", "gdfa:4: more lines than the corpus, which has 3"),
    ],
)
def test_wrong_alignments_of_a_corpus_are_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_alignments(str(write("gdfa", text)), *LENGTHS)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("links", "wanted", "dropped"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, False),
        ({(0, 0), (1, 1), (2, 2), (3, 3)}, {(0, 0), (1, 1)}, False),  # of a chart decoder: <s>, two words, </s>
        ({(0, 0), (1, 2), (2, 1), (3, 3)}, {(0, 1), (1, 0)}, False),
        ({(1, 1), (2, 2)}, {(0, 0), (1, 1)}, False),  # of a chart decoder whose grammar does not link <s> and </s>
        ({(0, 0), (1, 1), (2, 1)}, {(0, 0), (1, 1)}, True),  # no chart list has 0-0 without 3-3
        ({(0, 0), (1, 2)}, {(0, 0)}, True),
        ({(0, 1), (2, 2)}, {(0, 1)}, True),
    ],
)
def test_links_outside_the_sentence_are_renumbered_or_dropped(
    links: set[tuple[int, int]], wanted: set[tuple[int, int]], dropped: bool
) -> None:
    assert fitted(links, 2, 2) == (wanted, dropped)


@pytest.mark.parametrize(
    ("links", "list_counts", "wanted", "dropped"),
    [
        ({(1, 1), (2, 1)}, None, {(0, 0), (1, 0)}, False),
        ({(1, 1), (2, 1)}, True, {(0, 0), (1, 0)}, False),
        ({(1, 1), (2, 1)}, False, {(1, 1)}, True),
        ({(1, 1)}, None, {(1, 1)}, False),
        ({(1, 1)}, True, {(0, 0)}, False),
        ({(1, 1)}, False, {(1, 1)}, False),
        ({(0, 0), (2, 1)}, True, {(0, 0)}, True),  # an unambiguous line overrides the list
        ({(0, 0), (1, 1), (3, 3)}, False, {(0, 0)}, False),
        ({(0, 0), (3, 1)}, False, {(0, 0)}, True),  # two words after the end
    ],
)
def test_the_list_decides_for_ambiguous_lines(
    links: set[tuple[int, int]], list_counts: bool | None, wanted: set[tuple[int, int]], dropped: bool
) -> None:
    assert fitted(links, 2, 2, list_counts) == (wanted, dropped)


PHRASES, CHART, BEHIND, WITHIN = "0-0 1-1", "0-0 1-1 2-2 3-3", "1-1 2-2", "1-1"


@pytest.mark.parametrize(
    ("lists", "wanted"),
    [
        ([], None),
        ([[WITHIN, ""]], None),
        ([[WITHIN, BEHIND]], True),
        ([[BEHIND, PHRASES]], False),
        ([[BEHIND], [WITHIN, CHART]], True),
        ([[PHRASES], [CHART, CHART]], True),  # equal votes
        ([[PHRASES], [BEHIND, PHRASES], [CHART, CHART, CHART]], False),  # one vote per sentence
    ],
)
def test_numbering_of_links_is_the_majority_of_sentences(lists: list[list[str]], wanted: bool | None) -> None:
    numbering = LinkNumbering()
    for sentence, lines in enumerate(lists):
        texts = [f"{sentence} ||| a b ||| L= 1 ||| 0 ||| {links}".encode() for links in lines]
        numbering.add_sentence([parse_line(text, 1) for text in texts])
    assert numbering.counts_bos_eos is wanted


@pytest.mark.parametrize("link", [(4, 0), (0, 4)])
def test_a_link_far_outside_the_sentence_is_an_error(link: tuple[int, int]) -> None:
    with pytest.raises(Fault, match="word alignment beyond the 2 source and 2 target words"):
        fitted({(0, 0), link}, 2, 2)


@pytest.mark.parametrize(
    ("field", "phrases"),
    [(b" 1-2=0 0=1-3\n", [(1, 2, 0, 0), (0, 0, 1, 3)]), (b" 0=0 1-2=1-\n", None), (b" 0-0 \n", None), (b"\n", [])],
)
def test_phrases_of_a_segmentation_field(field: bytes, phrases: list[tuple[int, int, int, int]] | None) -> None:
    assert printed_phrases(field) == phrases


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        (b" 0-0 1-1 \n", "alignment"),
        (b" \n", "alignment"),
        (b" 0-1=0-1 2=2", "segmentation"),
        (b" 0-0 x", "other"),
        (b" [S a] ", "other"),
    ],
)
def test_kinds_of_fields_after_the_total(field: bytes, kind: str) -> None:
    """An empty field is an alignment without links."""
    assert describe_field(field) == kind


def test_links_after_an_empty_field_are_the_alignment() -> None:
    line = parse_line(b"0 ||| a b ||| L= 1 ||| 0 |||  ||| 0-1 ", 1)
    assert printed_alignment(line) == {(0, 1)}


@pytest.mark.parametrize(
    ("field", "faults"),
    [
        ("0-1=0-1 2=2", []),
        ("2=2 0-1=0-1", []),  # in source order
        ("0-1=0-1 3=2", [BEYOND_SOURCE]),
        ("0-1=0-1 2-3=2", [BEYOND_SOURCE]),
        ("0-1=0-1 2=3", [BEYOND_TRANSLATION]),
        ("0-1=0-1 2=2-3", [BEYOND_TRANSLATION]),
        ("0-1=0-1 3=3", [BEYOND_SOURCE, BEYOND_TRANSLATION]),
        ("1-0=0-1 2=2", [BACKWARDS]),
        ("0-1=1-0 2=2", [BACKWARDS]),
        ("0-1=0-1 1-2=2", [OVERLAPPING]),
        ("0-2=0-1 1=2", [OVERLAPPING]),
        ("0=0-1 1-2=1-2", [OVERLAPPING]),
        ("0=0 1=1 2=1", [OVERLAPPING]),  # without word 2 of the translation
    ],
)
def test_errors_of_a_segmentation(field: str, faults: list[str]) -> None:
    """The sentence has three source words and three target words."""
    phrases = segmentation(parse_line(f"0 ||| a b c ||| L= 1 ||| 0 ||| {field}".encode(), 1))
    assert phrases is not None
    assert segmentation_faults(phrases, 3, 3) == faults
    assert segmentation_faults(phrases, None, 3) == [each for each in faults if each != BEYOND_SOURCE]


def test_an_empty_segmentation_is_valid() -> None:
    assert segmentation_faults([], 3, 3) == []


@pytest.mark.parametrize("field", ["0=0 1=1 2=1", "0=0 1=1 2=2", "0=0 2=0 1=1"])
def test_a_phrase_without_target_words_is_valid(field: str) -> None:
    """`TrellisPath::GetTargetWordsRange` of Moses gives it a range that ends before its start.

    Only the start is printed. The sentence has three source words and two target words.
    """
    phrases = segmentation(parse_line(f"0 ||| a b ||| L= 1 ||| 0 ||| {field}".encode(), 1))
    assert phrases is not None
    assert segmentation_faults(phrases, 3, 2) == []


@given(st.lists(st.frozensets(st.tuples(st.integers(0, 300), st.integers(0, 300)))))
def test_compact_alignments_equal_the_list(links: list[frozenset[tuple[int, int]]]) -> None:
    compact = Alignments(links)
    assert (len(compact), list(compact), list(compact[1:-1])) == (len(links), links, links[1:-1])
    assert [compact[-number] for number in range(1, len(links) + 1)] == links[::-1]
