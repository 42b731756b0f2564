from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.nbest import MosesOutput
from rerank.linear.shortlist import shorten_list

Write = Callable[[str, "str | bytes"], Path]

LINES = [
    b"3 ||| a  b ||| F= 1 ||| -9 ||| 0-0\r\n",
    b"3 ||| b ||| F= 4 ||| -1\n",
    b"3 ||| c ||| F= 3 ||| -2\n",
    b"3 ||| d ||| F= 4 ||| -3\n",
    b"1 ||| e ||| F= 0 ||| -4",
]


def shorten(
    write: Write, size: int, same: str = "", weights: str = "F= 1\n", moses_output: MosesOutput | None = None
) -> bytes:
    """Return the content of the shortened list."""
    nbest, by_name, output = write("list", b"".join(LINES)), write("w", weights), write("output", "")
    shorten_list(str(nbest), str(by_name), size, str(output), same, moses_output)
    return output.read_bytes()


def test_lines_of_the_best_candidates_do_not_change(write: Write) -> None:
    assert shorten(write, 2) == LINES[1] + LINES[3] + LINES[4]


def test_the_candidate_with_the_highest_total_is_kept(write: Write) -> None:
    assert shorten(write, 1, weights="F= -1\n") == LINES[0] + LINES[1] + LINES[4]


def test_lines_may_come_from_a_list_with_more_features(write: Write) -> None:
    more = [line.replace(b" ||| -", b" G= 2 ||| -") for line in LINES]
    assert shorten(write, 2, str(write("more", b"".join(more)))) == more[1] + more[3] + more[4]


def test_a_feature_without_a_weight_is_an_error(write: Write) -> None:
    with pytest.raises(InputError, match=r"list:1: feature 'F' has no weight in .*w"):
        shorten(write, 1, weights="G= 1\n")


def test_the_candidate_that_moses_printed_is_kept(write: Write) -> None:
    """With MBR decoding, this is not the candidate with the highest total."""
    printed = MosesOutput("printed", ["", "e", "", "d"])
    assert shorten(write, 1, weights="F= -1\n", moses_output=printed) == LINES[0] + LINES[1] + LINES[3] + LINES[4]
