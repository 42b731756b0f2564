import random

import pytest
from sacrebleu import corpus_bleu

from rerank.analysis.bleu import statistics
from rerank.analysis.lengths import Bin, by_length


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
def test_bins_hold_enough_sentences(lengths: list[int], bounds: list[tuple[int, int, int]]) -> None:
    source = words(*lengths)
    bins = by_length(source, {})
    assert [(each.lower, each.upper, each.sentences) for each in bins] == bounds


def test_a_bin_is_scored_as_a_corpus_of_its_own() -> None:
    rng = random.Random(1)
    source = words(*[length for length in (4, 7) for _ in range(25)])
    one, two, system = ([" ".join(rng.choices("abc", k=8)) for _ in source] for _ in range(3))
    bins = by_length(source, statistics([one, two], {"s": system, "two": two}))
    for places, each in zip((slice(0, 25), slice(25, 50)), bins, strict=True):
        expected = corpus_bleu(system[places], [one[places], two[places]], tokenize="none", force=True).score
        assert each == Bin(each.lower, each.upper, 25, {"s": pytest.approx(expected), "two": pytest.approx(100)})


def test_lines_that_are_missing_are_no_shorter_set() -> None:
    with pytest.raises(ValueError, match="zip"):
        statistics([["a", "b"]], {"s": ["a"]})
