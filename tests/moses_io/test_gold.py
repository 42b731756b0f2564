import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.gold import LinkCounts, read_gold

Write = Callable[[str, "str | bytes"], Path]

LINKS = [frozenset({(0, 0), (1, 1), (1, 2)}), frozenset({(0, 0)}), frozenset[tuple[int, int]]()]
"""Evaluated links: in the first sentence 0-0 is sure, 1-1 possible and 1-2 wrong. In the second, 0-0 is possible."""
SIZES = [(2, 3), (1, 1), (2, 0)]
FORMS = {
    "dash": ("0-0 1p1 0-1\n0?0\n\n", 0),
    "colon": ("0-0:S 1-1:P 0-1:S\n0-0:P\n\n", 0),
    "from one": ("1-1 2p2 1-2\n1?1\n\n", 1),
    "ends": ("0-0  1p1 0-1 \r\n0?0\r\n\r\n", 0),
    "both": ("0-0 1p1 0p1 0-1 0p0\n0?0\n\n", 0),
    "by link": ("1 1 1 S\n1 2 2 P\n1 1 2\n2 1 1 P\n3 1 0 S\n", 0),
    "by link, with confidences": ("0001 1 1 S 0.9\n\n0001 2 2 0.5 P\n1 1 2 1\n02 1 1 P 1\n3\t0\t0\n", 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_counts_of_all_gold_formats(write: Write, form: str) -> None:
    text, base = FORMS[form]
    for content in (text, gzip.compress(text.encode())):
        gold = read_gold(str(write("gold", content)), base)
        counts = LinkCounts()
        for number, (links, sizes) in enumerate(zip(LINKS, SIZES, strict=True)):
            counts = counts.plus(gold.counts(number, links, *sizes))
        gold.check_end(3)
        assert counts == LinkCounts(sentences=3, links=4, sure=2, possible=4, in_sure=1, in_possible=3)


def test_error_rate_precision_and_recall(write: Write) -> None:
    """AER is 1 - (1 + 3) / (4 + 2), precision 3 of 4 links, recall 1 of 2 sure links."""
    counts = LinkCounts(sentences=3, links=4, sure=2, possible=4, in_sure=1, in_possible=3)
    assert (counts.error_rate, counts.precision, counts.recall) == pytest.approx((1 / 3, 3 / 4, 1 / 2))
    nothing = LinkCounts(sentences=3, links=0, sure=2, possible=4)
    assert (nothing.error_rate, nothing.precision, nothing.recall) == (1, 0, 0)
    perfect = read_gold(str(write("gold", "0-0 1p1\n")), 0).counts(0, frozenset({(0, 0), (1, 1)}), 2, 2)
    assert (perfect.error_rate, perfect.precision, perfect.recall) == (0, 1, 1)


def test_sentences_without_gold_links_are_ignored(write: Write) -> None:
    gold = read_gold(str(write("gold", "2 1 1 S\n")), 0)
    assert gold.counts(0, LINKS[0], 2, 3) == LinkCounts()
    assert gold.counts(1, LINKS[1], 1, 1).error_rate == 0


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("0-0\n0-0 x\n", 0, "gold:2: expected links such as '3-4 3p5', or sentence, source word, target word and S or"),
        ("0-0\n1 1 1 S\n", 0, "gold:2: expected links such as '3-4 3p5', or sentence, source word, target word and S"),
        ("0-0:X\n", 0, "found '0-0:X'"),
        ("0p0:S\n", 0, "found '0p0:S'"),
        ("1-1 1-0\n", 1, "gold:1: the link 1-0 has index 0, but word indices start at 1"),
        ("1 1 1 S\n0-0\n", 0, "gold:2: expected links such as"),
        ("1 1 1 S\n1 1\n", 0, "found '1 1'"),
        ("1 1 1 S\n1 1 -1\n", 0, "found '1 1 -1'"),
        ("1 1 1 S\n0 1 1\n", 0, "found '0 1 1'"),
        ("1 1 1 S\n1 1 1 S P\n", 0, "found '1 1 1 S P'"),
        ("1 1 1 X\n", 0, "found '1 1 1 X'"),
        ("1 1 1 S 1 1\n", 0, "found '1 1 1 S 1 1'"),
        ("", 0, "gold: no sure link, which the alignment error rate needs"),
        ("0p0\n", 0, "gold: no sure link"),
        ("1 1 1 P\n1 1 0 S\n", 0, "gold: no sure link"),
    ],
)
def test_wrong_gold_alignments_are_errors(write: Write, text: str, base: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_gold(str(write("gold", text)), base)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        (
            "0-0\n1-2\n\n",
            0,
            "gold:2: the link 1-2 is outside a sentence pair of 1 and 1 words. If word indices start at 1, use --gold",
        ),
        ("1-1\n1-2\n\n", 1, "gold:2: the link 1-2 is outside a sentence pair of 1 and 1 words"),
        ("1 1 1\n1 2 3\n1 3 1\n", 0, "gold:3: the link 3-1 is outside a sentence pair of 2 and 3 words"),
        ("0-0\n\n", 0, "gold has 2 lines, the text has more"),
        ("0-0\n\n\n\n", 0, "gold has 4 lines, the text has 3"),
        ("1 1 1\n7 1 1\n7 2 2\n", 0, "gold:2: sentence 7 is beyond the text, which has 3 lines"),
    ],
)
def test_a_gold_alignment_of_another_text_is_an_error(write: Write, text: str, base: int, message: str) -> None:
    gold = read_gold(str(write("gold", text)), base)
    with pytest.raises(InputError) as caught:
        for number, sizes in enumerate(SIZES):
            gold.counts(number, frozenset(), *sizes)
        gold.check_end(3)
    assert message in str(caught.value)
