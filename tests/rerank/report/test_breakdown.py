import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from moses_io.files.streams import Lines
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.metrics.metric import Metric
from rerank.report.breakdown import Bin, Depth, by_length, by_margin, corpus_bleu, margin, statistics
from rerank.report.listed import find_in_list

Read = Callable[..., Any]


def test_margins_are_computed_over_the_next_different_text() -> None:
    texts = [
        "0 ||| a ||| F= 1 ||| -1",
        "0 |||  a  ||| F= 1 ||| -2",
        "0 ||| b ||| F= 1 ||| -2.5",
        "0 ||| c ||| F= 3 ||| -4",
    ]
    texts += ["1 ||| a ||| F= 0 ||| -7", "3 ||| a ||| F= 0 ||| -1.25", "3 ||| b ||| F= 2 ||| -1"]
    lists = read_nbest(Lines("list", texts))
    assert [margin(each, []) for each in lists] == [1.5, None, 0.25]


def test_margins_of_the_decoder_output() -> None:
    """The margin is negative if another candidate has a higher total, and None if the output is not a candidate."""
    first, second = read_nbest(
        Lines(
            "list",
            [
                f"{number} ||| {text} ||| F= 1 ||| {total}"
                for number in (0, 1)
                for text, total in zip("abc", (-1, -3, -4), strict=True)
            ],
        )
    )
    printed = [replace(first, moses_output="b"), replace(second, moses_output="d")]
    assert [margin(each, []) for each in printed] == [-2, None]


def test_margins_in_a_merged_list_use_candidates_of_the_decoder() -> None:
    """Sentence 0 has one text of Moses. Sentence 2 has none, so the first of the other lists is used."""
    lines = [
        "0 ||| a ||| FromMoses= 1 FromX= 1 FromY= 0 ||| -1",
        "0 ||| b ||| FromMoses= 0 FromX= 1 FromY= 0 ||| -1",
        "1 ||| a ||| FromMoses= 1 FromX= 0 FromY= 0 ||| -1",
        "1 ||| b ||| FromMoses= 1 FromX= 1 FromY= 0 ||| -3",
        "1 ||| c ||| FromMoses= 0 FromX= 1 FromY= 0 ||| -2",
        "2 ||| a ||| FromMoses= 0 FromX= 1 FromY= 0 ||| -1",
        "2 ||| b ||| FromMoses= 0 FromX= 1 FromY= 1 ||| -1.5",
        "2 ||| c ||| FromMoses= 0 FromX= 0 FromY= 1 ||| -1.25",
    ]
    lists = read_nbest(Lines("list", lines))
    assert [margin(each, ["Moses", "X", "Y"]) for each in lists] == [None, 2, 0.5]


def test_quarters_contain_every_sentence_with_a_margin_once(read: Read) -> None:
    """Sentence 7 has a single text and therefore no margin."""
    rng = np.random.default_rng(1)
    margins = rng.integers(0, 9, 50) / 4
    blocks = [f"{number} ||| a ||| F= 0 ||| {m}\n{number} ||| b ||| F= 0 ||| 0\n" for number, m in enumerate(margins)]
    blocks[7] = "7 ||| a ||| F= 0 ||| 3\n"
    references = [["a b c d e f"] * 51]
    systems = {name: [" ".join(rng.choice(list("abcdefg"), 6)) for _ in range(51)] for name in ("before", "after")}
    counted = statistics(references, systems)
    _, collected = read("".join(blocks), references)
    quarters = by_margin(collected, counted)
    assert [each.sentences for each in quarters] == [13, 12, 12, 12]
    margins[7] = np.inf
    order = np.argsort(margins, kind="stable")[:-1]
    bounds = [(margins[part[0]], margins[part[-1]]) for part in np.array_split(order, 4)]
    assert [(each.lower, each.upper) for each in quarters] == bounds
    for name, rows in counted.items():
        for each, part in zip(quarters, np.array_split(order, 4), strict=True):
            assert each.scores[name] == pytest.approx(corpus_bleu(rows[part].sum(axis=0)))


@pytest.mark.parametrize(("total", "sentences"), [("", 4), ("|||", 4), ("||| -1", 4), ("||| -1", 3)])
def test_lists_without_quarters(read: Read, total: str, sentences: int) -> None:
    """Lists without totals, with a single candidate per sentence, or with few sentences."""
    lines = "".join(f"{number} ||| a ||| F= 0 {total}\n" for number in range(sentences))
    references = [["a"] * sentences]
    _, collected = read(lines, references)
    assert by_margin(collected, statistics(references, {"before": references[0]})) == []


LIST = """\
0 ||| a b c d x ||| F= 1 ||| -1
0 ||| a b c d x ||| F= 1 ||| -2
0 ||| a b c d e ||| F= 1 ||| -2.5
0 ||| z ||| F= 3 ||| -4
1 ||| f g ||| F= 0 ||| -7
3 ||| i j ||| F= 0 ||| -1
3 ||| i j k ||| F= 2 ||| -1.25
"""


def bleu(lines: list[str], references: list[list[str]]) -> float:
    """Compute corpus BLEU directly from all lines, as a simple second implementation."""
    metric = Metric("bleu")
    rows = [metric.counter(answers)(line) for line, *answers in zip(lines, *references, strict=True)]
    return 100 * float(metric.formula.score(np.array(rows).sum(axis=0)))


def by_depth(read: Read, text: str, references: list[list[str]], filtered: str = "") -> list[Depth]:
    depths, _ = read(text, references, filtered)
    table: list[Depth] = depths.table()
    return table


ANSWERS = [["a b c d e", "f g", "h", "i j k"], ["a b c d", "f g x", "h h", "k"]]


@pytest.mark.parametrize("references", [ANSWERS[:1], ANSWERS])
def test_reranked_scores_by_depth(read: Read, references: list[list[str]]) -> None:
    """A sentence without candidates has an empty line. The first of equally good candidates is used."""
    depths = by_depth(read, LIST, references)
    chosen = ["a b c d x", "a b c d x", "z"]
    assert [each.candidates for each in depths] == [1, 2, 4]
    for each, first in zip(depths, chosen, strict=True):
        last = "i j" if each.candidates == 1 else "i j k"
        assert each.reranked == pytest.approx(bleu([first, "f g", "", last], references))
    assert [each.deeper for each in depths] == [2 / 3, 1 / 3, 0]


@pytest.mark.parametrize("references", [ANSWERS[:1], ANSWERS])
def test_oracle_scores_equal_those_of_the_evaluation(read: Read, references: list[list[str]], tmp_path: Path) -> None:
    first = "0 ||| a b c d x ||| F= 1 ||| -1\n1 ||| f g ||| F= 0 ||| -7\n3 ||| i j ||| F= 0 ||| -1\n"
    for text, index in ((LIST, -1), (first, 0)):
        depths = by_depth(read, LIST, references)
        (tmp_path / "nbest").write_text(text)
        best = find_in_list(str(tmp_path / "nbest"), references, {}, Filters("")).oracle
        assert depths[index].oracle == pytest.approx(bleu(best, references))


def test_without_references_only_ranks_are_known(read: Read) -> None:
    depths = by_depth(read, LIST, [])
    assert [(each.reranked, each.oracle, each.deeper) for each in depths] == [
        (None, None, 2 / 3), (None, None, 1 / 3), (None, None, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(("longest", "expected"), [(1, [1]), (5, [1, 2, 5]), (12, [1, 2, 5, 10, 12])])
def test_the_last_depth_is_the_longest_list(read: Read, longest: int, expected: list[int]) -> None:
    text = "".join(f"0 ||| w{number} ||| F= 0 ||| 0\n" for number in range(longest))
    assert [each.candidates for each in by_depth(read, text, [["w0"]])] == expected


def test_candidates_are_filtered(read: Read) -> None:
    text = "0 ||| wo@@ rd one two three ||| F= 0 ||| 0\n"
    (last,) = by_depth(read, text, [["word one two three"]], "debpe")
    assert last.reranked == last.oracle == pytest.approx(100)


def words(*lengths: int) -> list[str]:
    return [" ".join(["x"] * length) for length in lengths]


@pytest.mark.parametrize(
    ("lengths", "bounds"),
    [
        ([3], [(3, 3, 1)]),
        ([1] * 19 + [2] * 20, [(1, 2, 39)]),
        ([1] * 20 + [2] * 19, [(1, 2, 39)]),
        ([2] * 20 + [1] * 20, [(1, 1, 20), (2, 2, 20)]),
        ([0] * 5 + [1] * 15 + [4] * 20 + [9] * 3, [(0, 1, 20), (4, 9, 23)]),
        ([5] * 400, [(5, 5, 400)]),
        (list(range(1, 401)), [(1 + 50 * i, 50 + 50 * i, 50) for i in range(8)]),
    ],
)
def test_bins_have_enough_sentences(lengths: list[int], bounds: list[tuple[int, int, int]]) -> None:
    source = words(*lengths)
    bins = by_length(source, {})
    assert [(each.lower, each.upper, each.sentences) for each in bins] == bounds


def test_a_bin_is_scored_as_a_separate_corpus() -> None:
    rng = random.Random(1)
    source = words(*[length for length in (4, 7) for _ in range(25)])
    one, two, system = ([" ".join(rng.choices("abc", k=8)) for _ in source] for _ in range(3))
    bins = by_length(source, statistics([one, two], {"s": system, "two": two}))
    for part_of_lines, each in zip((slice(0, 25), slice(25, 50)), bins, strict=True):
        expected = sacrebleu.corpus_bleu(
            system[part_of_lines], [one[part_of_lines], two[part_of_lines]], tokenize="none", force=True
        ).score
        assert each == Bin(each.lower, each.upper, 25, {"s": pytest.approx(expected), "two": pytest.approx(100)})
