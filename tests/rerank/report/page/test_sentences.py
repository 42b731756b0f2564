from collections.abc import Callable
from typing import Any

import pytest

from rerank.report.page.sentences import index

Explore = Callable[..., Any]


def columns(explored: Any, places: dict[int, int]) -> dict[str, Any]:
    return index(explored.reranked, explored.measured, explored.changes, places)


def test_columns_have_a_row_a_sentence(explore: Explore) -> None:
    explored = explore([["a b c", "d", "e"], ["a b c", "f", "g"]])
    assert columns(explored, {0: 0, 2: 1}) == {
        "metric": "chrf",
        "source": ["s0 t0", "s1", r"s2\x9b"],
        "references": [["a b c", "d", "e"], ["a b c", "f", "g"]],
        "before": ["a b x", "", r"a\x1b c"],
        "after": ["a b c", "", r"a\x1b c"],
        "gain": [pytest.approx(100 * (1 - 0.125**0.25 * 2**0.25), abs=0.006), None, None],
        "expected": [41.26, None, 90],
        "helped": [0.75, None, None],
        "clarity": [0.75, None, None],
        "chunk": [0, None, 1],
    }


def test_what_is_known_of_no_sentence_is_no_column(explore: Explore) -> None:
    made = columns(explore([]), {})
    assert (made["references"], made["gain"], made["clarity"]) == ([], [], [0.75, None, None])
