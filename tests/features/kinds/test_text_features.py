"""Features that read only text and the list, against values computed by hand for two sentences."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.lexical import MIN_PROBABILITY, model1
from features.request import FeatureRequest
from features.sentences import TokenPairs
from features.translation_table import estimate_words
from moses_io.files.errors import InputError
from moses_io.hypothesis import parse_line

LINES = [
    ["0 ||| the the 12 houses , ||| LM0= 1 ||| -1 ||| 0-0 1-2", "0 ||| das house 12 ! ||| LM0= 1 ||| -1 ||| "],
    ["1 ||| a b c a b ||| LM0= 1 ||| 0 ||| 0-0=0-1 1=2-4", "1 ||| c ||| LM0= 1 ||| -0.6931471805599453 ||| 0=0"],
]
SOURCES = ["das Haus 1.2 ,", "x y"]


def sentences() -> list[Sentence]:
    found = []
    for number, (source, lines) in enumerate(zip(SOURCES, LINES, strict=True)):
        parsed = tuple(parse_line(line.encode(), 1) for line in lines)
        found.append(
            Sentence(number, tuple(source.split(" ")), tuple(tuple(p.text.split(" ")) for p in parsed), parsed)
        )
    return found


def values(kind: str, argument: str = "", given: list[Sentence] | None = None) -> list[list[float]]:
    features = FeatureSet([FeatureRequest("X", kind, argument)], Resources("cpu"))
    found: Array = features.score(given or sentences()).columns[0].values
    rows: list[list[float]] = found.tolist()
    return rows


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("length", [5, 4, 5, 1]),
        ("copied", [0, 1, 0, 0]),
        ("repetition", [-1, 0, 0, 0]),
        ("numbers", [0, 0, 0, 0]),
        ("punctuation", [0, -2, 0, 0]),
    ],
)
def test_count_features_equal_values_computed_by_hand(kind: str, wanted: list[float]) -> None:
    assert values(kind) == [[value] for value in wanted]


def test_repetition_counts_bigrams_and_trigrams() -> None:
    texts = ("a b a b", "a b c a b c", "a a a", "a b b a")
    given = [Sentence(0, (), tuple(tuple(text.split(" ")) for text in texts))]
    assert values("repetition", "", given) == [[-1], [-1], [-2], [-1]]


def test_numbers_that_differ() -> None:
    given = [Sentence(0, ("3", "1,000", "x"), (("3", "1.000"), ("4",), ()))]
    assert values("numbers", "", given) == [[0], [-3], [-2]]


def test_escaped_tokens_count_as_their_characters() -> None:
    escaped, plain = ("er", "sagt", "&quot;", "ja", "&#91;", "3"), ("er", "sagt", '"', "ja", "[", "3")
    for source in (escaped, plain):
        given = [Sentence(0, source, (("he", "said", source[2], "yes"),))]
        found = [values(kind, "", given) for kind in ("numbers", "punctuation", "copied")]
        assert found == [[[-1]], [[-1]], [[0]]]


def test_escaped_tokens_equal_the_characters_of_the_other_side() -> None:
    given = [Sentence(0, ("R&amp;D", "&quot;", "x"), (("R&D", '"', "x"),))]
    assert [values(kind, "", given) for kind in ("copied", "punctuation")] == [[[2]], [[0]]]


def test_symbols_count_as_punctuation() -> None:
    given = [Sentence(0, ("5", "$", "+"), (("5", "$", "+"), ("5",), ("$", "$", "=")))]
    assert values("punctuation", "", given) == [[0], [-2], [-3]]


def test_length_ratio_by_hand(tmp_path: Path) -> None:
    """The ratios 2/2 and 4/2 have the logarithms 0 and log 2, with mean log(2)/2 and variance (log(2)/2)²."""
    (tmp_path / "s").write_text("a\na\n")
    (tmp_path / "t").write_text("x\nx y z\n")
    mean = math.log(2) / 2
    (first, *_), *rest = values("length", f"{tmp_path / 's'},{tmp_path / 't'}")
    assert first == 5
    for row, ratio in zip(rest, (5 / 5, 6 / 3, 2 / 3), strict=True):
        error = (math.log(ratio) - mean) ** 2 / mean**2
        assert row[1] == pytest.approx(-0.5 * (error + math.log(2 * math.pi * mean**2)))
    for name, line in (("7s", "a\n"), ("7t", "a b\n")):
        (tmp_path / name).write_text(line * 7)
    with pytest.raises(InputError, match="all pairs have the same length ratio"):
        values("length", f"{tmp_path / '7s'},{tmp_path / '7t'}")
    with pytest.raises(InputError, match="expected length:SOURCE,TARGET"):
        values("length", "one")


def test_lexical_tables_by_hand(tmp_path: Path) -> None:
    """p(the|das) = 0.6 and p(12|NULL) = 0.1 are the only entries, averaged over NULL and four source words."""
    path = tmp_path / "lex.f2e"
    path.write_text("the das 0.6\n12 NULL 0.1\n")
    rare = math.log(MIN_PROBABILITY)
    wanted = 2 * math.log(0.6 / 5) + math.log(0.1 / 5) + 2 * rare
    assert values("lexical", str(path))[0] == pytest.approx([wanted])
    other = tmp_path / "lex.e2f"
    other.write_text("das the 0.6\n1.2 NULL 0.1\n")
    assert values("lexical", str(other))[0] == pytest.approx([math.log(2 * 0.6 / 6) + math.log(0.1 / 6) + 2 * rare])
    path.write_text("the das\n")
    with pytest.raises(InputError, match=r"lex\.f2e:1: expected 'word word probability'"):
        values("lexical", str(path))
    with pytest.raises(InputError, match="expected f2e or e2f in the file name"):
        values("lexical", "table")


@pytest.mark.parametrize("kind", ["ibm1", "length"])
def test_tabs_in_a_corpus_separate_words(tmp_path: Path, kind: str) -> None:
    texts = {"s": "das Haus\ndas Buch\nein\n", "t": "the house\nthe good book\na\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.tabs").write_text(text.replace(" ", "\t"))
    given = [Sentence(0, ("das", "Buch"), (("the", "book"), ("house",)))]
    with_tabs = values(kind, f"{tmp_path / 's.tabs'},{tmp_path / 't.tabs'}", given)
    assert with_tabs == values(kind, f"{tmp_path / 's'},{tmp_path / 't'}", given)


def test_ibm_model_1_equals_a_plain_implementation_of_em(tmp_path: Path) -> None:
    """The corpus is das Haus / the house, das Buch / the book, ein Buch / a book."""
    pairs = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]
    table = estimate_words(TokenPairs.of((left.split(" "), right.split(" ")) for left, right in pairs))
    slow: dict[tuple[str, str], float] = {}
    for _ in range(5):
        counts: dict[tuple[str, str], float] = {}
        for left, right in pairs:
            for word in right.split(" "):
                given = ["NULL", *left.split(" ")]
                total = sum(slow.get((one, word), 1.0) for one in given)
                for one in given:
                    counts[one, word] = counts.get((one, word), 0.0) + slow.get((one, word), 1.0) / total
        slow = {key: count / sum(c for (one, _), c in counts.items() if one == key[0]) for key, count in counts.items()}
    assert {(one, word) for one, row in table.items() for word in row} == set(slow)
    for (one, word), value in slow.items():
        assert table[one][word] == pytest.approx(value)
    assert table["das"]["the"] > 0.7 and table["Buch"]["book"] > 0.7
    assert model1(table, ["the"], ["das"]) > model1(table, ["the"], ["Buch"])
    (tmp_path / "s").write_text("das\n")
    (tmp_path / "t").write_text("the\n")
    given = [Sentence(0, ("das",), (("the",), ("x",)))]
    both = values("ibm1", f"{tmp_path / 's'},{tmp_path / 't'}", given)
    assert both[0] == pytest.approx([0, 0], abs=1e-9)
    assert both[1] == pytest.approx([math.log(MIN_PROBABILITY), math.log(0.5)])


def test_consensus_by_hand() -> None:
    """The candidates of sentence 1 have the probabilities 2/3 and 1/3.

    The expected counts are 1 for `c` and 4/3 for `a` and for `b`. The expected length is 11/3.
    """
    first, second = values("consensus", "bleu")[2:]
    precisions = [(2 * 4 / 3 + 1 + 1) / 6, (8 / 3 + 1) / 5, (2 + 1) / 4, (4 / 3 + 1) / 3]
    assert first[0] == pytest.approx(math.exp(sum(map(math.log, precisions)) / 4), rel=1e-6)
    assert second[0] == pytest.approx(math.exp(0 + 1 - 11 / 3), rel=1e-6)
    assert 0 < values("consensus", "chrf")[3][0] < values("consensus", "chrf")[2][0] < 1
    assert values("consensus", "bleu,0")[2][0] != pytest.approx(first[0])
    for argument in ("ter", "bleu,x"):
        with pytest.raises(InputError, match=f"feature 'consensus:{argument}'"):
            values("consensus", argument)


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_consensus_of_an_empty_candidate_is_0(metric: str) -> None:
    """This also holds for a list of empty candidates only."""
    lines = tuple(parse_line(f"0 ||| {text} ||| L= 1 ||| -1".encode(), 1) for text in ("", "a b"))
    assert values("consensus", metric, [Sentence(0, (), ((),), lines[:1])]) == [[0]]
    assert values("consensus", metric, [Sentence(0, (), ((), ("a", "b")), lines)])[0] == [0]


def test_large_totals_do_not_overflow() -> None:
    """Their difference of log 3 gives the probabilities 3/4 and 1/4."""
    totals = (5000.0, 5000.0 - math.log(3))
    lines = tuple(parse_line(f"0 ||| a ||| L= 1 ||| {total!r}".encode(), 1) for total in totals)
    found = values("posteriors", "", [Sentence(0, (), (("a",), ("b",)), lines)])
    assert [row[0] for row in found] == pytest.approx([0.75, 0.25])


def test_posteriors_by_hand() -> None:
    first, second = values("posteriors")[2:]
    assert first == pytest.approx([4 * 2 / 3 + 1, 4 * 2 / 3, 3 * 2 / 3, 2 * 2 / 3])
    assert second == pytest.approx([1, 0, 0, 0])
    no_total = [Sentence(0, (), (("a",),), (parse_line(b"0 ||| a ||| L= 1", 1),))]
    needed = "the features consensus and posteriors need a total: no total in the fourth field"
    with pytest.raises(InputError, match=f":1: {needed}"):
        values("posteriors", "", no_total)


def test_phrases_by_hand() -> None:
    """In the first line, 2 source and 3 target words are unaligned.

    The third line has two phrases in monotone order.
    """
    found = values("phrases")
    assert found[0] == pytest.approx([2, 2.5, -2, -3, 1])
    assert found[1] == pytest.approx([0, 0, -4, -4, 1])
    assert found[2] == pytest.approx([2, 2.5, 0, 0, 1])
    nothing = [Sentence(0, (), (("a",),), (parse_line(b"0 ||| a ||| L= 1 ||| 0", 1),))]
    with pytest.raises(InputError, match=r":1: feature 'phrases': no alignment here. Decode with"):
        values("phrases", "", nothing)


def test_connected_links_form_one_phrase() -> None:
    """The links 0-0, 0-2 and 1-2 share source word 0 and target word 2. The link 3-1 shares no word with them."""
    line = parse_line(b"0 ||| a b c ||| L= 1 ||| -1 ||| 0-0 0-2 3-1 1-2", 1)
    (found,) = values("phrases", "", [Sentence(0, ("w", "x", "y", "z"), (("a", "b", "c"),), (line,))])
    assert found == [2, 1.5, -1, 0, 0.5]


def test_a_candidate_without_links_before_its_tree() -> None:
    line = parse_line(b"0 ||| a ||| L= 1 ||| 0 |||  ||| [S a]", 1)
    assert values("phrases", "", [Sentence(0, ("x",), (("a",),), (line,))]) == [[0, 0, -1, -1, 1]]


def test_links_just_beyond_the_sentence_are_ignored_with_one_warning(
    warned: Callable[[str], AbstractContextManager[None]],
) -> None:
    """Two links remain in each line, so every word is aligned."""
    lines = tuple(
        parse_line(f"0 ||| a b ||| L= 1 ||| 0 ||| {links}".encode(), number)
        for number, links in enumerate(("0-0 1-1", "0-0 1-1 2-1", "0-0 1-1 1-2"), start=1)
    )
    with warned("^list:2: links beyond the end of the source or translation are ignored, here and in later lines"):
        found = values("phrases", "", [Sentence(0, ("x", "y"), (("a", "b"),) * 3, lines, "list")])
    assert found == [[2, 1, 0, 0, 1]] * 3


def test_links_of_chart_decoders_include_bos_and_eos() -> None:
    """In `0-0 1-1 2-2 3-3` for a sentence of two words, <s> is link 0-0 and </s> is link 3-3."""
    line = parse_line(b"0 ||| a b  |||  L= 1.000 ||| -1.000 ||| 0-0 1-1 2-2 3-3 ||| [S]", 1)
    swapped = parse_line(b"0 ||| a b ||| L= 1 ||| -1 ||| 0=1 1=0 ||| 0-1 1-0 ", 1)
    found = values("phrases", "", [Sentence(0, ("x", "y"), (("a", "b"),) * 2, (line, swapped))])
    assert found == [[2, 1, 0, 0, 1], [2, 1, 0, 0, 0]]
    beyond = parse_line(b"0 ||| a b ||| L= 1 ||| -1 ||| 0-0 7-9", 1)
    with pytest.raises(InputError, match=":1: word alignment beyond the 2 source and 2 target words"):
        values("phrases", "", [Sentence(0, ("x", "y"), (("a", "b"),), (beyond,))])


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("0-1=0-1 3=2", "phrases beyond the end of the source"),
        ("0-1=0-1 2=3", "phrases beyond the end of the translation"),
        ("1-0=0-1 2=2", "ranges that run backwards"),
        ("0-1=0-1 1=2", "overlapping phrases"),
    ],
)
def test_segmentations_that_do_not_match_the_sentence_are_errors(field: str, fault: str) -> None:
    line = parse_line(f"0 ||| a b c ||| L= 1 ||| -1 ||| {field}".encode(), 7)
    expected = "expected phrases within the 3 source and 3 target words, no word in two of them"
    with pytest.raises(InputError, match=f"list:7: segmentation with {fault}, {expected}"):
        values("phrases", "", [Sentence(0, ("x", "y", "z"), (("a", "b", "c"),), (line,), "list")])


@pytest.mark.parametrize("blank", ["source", "target"])
def test_a_corpus_of_blank_lines_is_an_error(tmp_path: Path, blank: str) -> None:
    for name in ("source", "target"):
        (tmp_path / name).write_text("\n  \n" if name == blank else "a\n\n")
    with pytest.raises(InputError, match=f"{blank}: all lines are blank"):
        values("ibm1", f"{tmp_path}/source,{tmp_path}/target")
