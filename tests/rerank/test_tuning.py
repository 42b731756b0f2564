from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.weights import read_weights

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

REFERENCE = "the old house is red .\n"


def test_an_unlabelled_list_is_tuned_by_its_one_name(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the house ||| 1 -9 ||| 0\n0 ||| the old house is red . ||| 1 -1 ||| 0\n")
    start = write("start", "[weight]\nUnlabelled= 0.5 0\n")
    status, ini, _ = command("tune", nbest, "--reference", write("ref", REFERENCE), "--start", start)
    assert status == 0
    weights = read_weights(str(write("weights.ini", ini)))
    assert weights["Unlabelled"][1] > 0
    assert command("rerank", nbest, "--weights", write("w", ini))[1].decode() == REFERENCE


def test_sparse_features_are_tuned_and_used(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the house ||| L= 1 p_x= 1 ||| 0\n0 ||| the old house is red . ||| L= 1 p_y= 1 ||| 0\n")
    status, ini, _ = command(
        "tune", nbest, "--reference", write("ref", REFERENCE), "--start", write("start", "[weight]\nL= 1\n")
    )
    weights = read_weights(str(write("weights.ini", ini)))
    assert status == 0
    assert weights["p_y"][0] > 0 > weights["p_x"][0]
    assert command("rerank", nbest, "--weights", write("w", ini))[1].decode() == REFERENCE


def test_the_best_of_several_references_counts(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the old house is red . ||| L= 1 ||| 0\n0 ||| a red one , old ||| L= 2 ||| 0\n")
    first, second = write("first", REFERENCE), write("second", "a red one , old\n")
    start = write("start", "[weight]\nL= 1\n")
    err = command("tune", nbest, "--reference", first, "--reference", second, "--start", start)[2]
    assert "100.00 -> 100.00" in err
    assert "|references:2|" in err


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("[weight]\nM= 1\n", "no feature of the list has a weight here; the list has L"),
        ("[weight]\nL= 1 2\n", "feature 'L' has 1 values in the list and 2 weights"),
    ],
)
def test_start_weights_that_do_not_fit(command: Command, write: Write, weights: str, message: str) -> None:
    nbest, reference = write("list", "0 ||| the ||| L= 1 ||| 0\n"), write("ref", REFERENCE)
    status, _, err = command("tune", nbest, "--reference", reference, "--start", write("start", weights))
    assert status == 2
    assert message in err
