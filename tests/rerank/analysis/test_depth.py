from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rerank.analysis.margins import Depth
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.report.evaluation import look_up

Read = Callable[..., Any]

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
    """A slow second way: lines of a whole set."""
    metric = Metric("bleu")
    rows = [metric.counter(answers)(line) for line, *answers in zip(lines, *references, strict=True)]
    return 100 * float(metric.formula.score(np.array(rows).sum(axis=0)))


def by_depth(read: Read, text: str, references: list[list[str]], filtered: str = "") -> list[Depth]:
    depths, _ = read(text, references, filtered)
    table: list[Depth] = depths.table()
    return table


ANSWERS = [["a b c d e", "f g", "h", "i j k"], ["a b c d", "f g x", "h h", "k"]]


@pytest.mark.parametrize("references", [ANSWERS[:1], ANSWERS])
def test_choices_of_each_depth(read: Read, references: list[list[str]]) -> None:
    """The line of a sentence without candidates is empty; of two equal candidates the first counts."""
    depths = by_depth(read, LIST, references)
    chosen = ["a b c d x", "a b c d x", "z"]
    assert [each.candidates for each in depths] == [1, 2, 4]
    for each, first in zip(depths, chosen, strict=True):
        last = "i j" if each.candidates == 1 else "i j k"
        assert each.choice == pytest.approx(bleu([first, "f g", "", last], references))
    assert [each.deeper for each in depths] == [2 / 3, 1 / 3, 0]


@pytest.mark.parametrize("references", [ANSWERS[:1], ANSWERS])
def test_the_best_are_those_of_evaluations(read: Read, references: list[list[str]], tmp_path: Path) -> None:
    first = "0 ||| a b c d x ||| F= 1 ||| -1\n1 ||| f g ||| F= 0 ||| -7\n3 ||| i j ||| F= 0 ||| -1\n"
    for text, place in ((LIST, -1), (first, 0)):
        depths = by_depth(read, LIST, references)
        (tmp_path / "nbest").write_text(text)
        best = look_up(str(tmp_path / "nbest"), references, {}, Filters("")).best
        assert depths[place].best == pytest.approx(bleu(best, references))


def test_without_references_only_places_are_known(read: Read) -> None:
    depths = by_depth(read, LIST, [])
    assert [(each.choice, each.best, each.deeper) for each in depths] == [
        (None, None, 2 / 3), (None, None, 1 / 3), (None, None, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(("longest", "expected"), [(1, [1]), (5, [1, 2, 5]), (12, [1, 2, 5, 10, 12])])
def test_the_last_depth_is_the_longest_list(read: Read, longest: int, expected: list[int]) -> None:
    text = "".join(f"0 ||| w{number} ||| F= 0 ||| 0\n" for number in range(longest))
    assert [each.candidates for each in by_depth(read, text, [["w0"]])] == expected


def test_candidates_go_through_the_filters(read: Read) -> None:
    text = "0 ||| wo@@ rd one two three ||| F= 0 ||| 0\n"
    (last,) = by_depth(read, text, [["word one two three"]], "debpe")
    assert last.choice == last.best == pytest.approx(100)
