import math
from dataclasses import replace

import numpy as np
import pytest

from features.feature import Resources, Sentence
from features.kinds.consensus import Consensus
from moses_io.files.text import tokens
from moses_io.hypothesis import parse_line
from moses_io.nbest import SentenceList
from rerank.confidence.predictors import FeatureUnits, predictors

UNITS = FeatureUnits((("L", 1), ("T", 2)), np.array([2.0, 1.0, 0.0]), added=("T",))
LINES = [
    "0 ||| a b c d ||| L= -4 T= 1 2 ||| -1",
    "0 ||| a b x d ||| L= -2 T= 3 1 ||| -2",
    "0 ||| a b x d ||| L= -3 T= 0 0 ||| -4",
    "0 ||| e ||| L= -9 T= 0 0 ||| -3",
]
TOTALS = np.array([1.0, 3.0, 0.5, 0.0])


def listed(lines: list[str]) -> SentenceList:
    return SentenceList(0, tuple(parse_line(line.encode(), number) for number, line in enumerate(lines, 1)), "list")


def test_values_of_predictors() -> None:
    choice, change = predictors(listed(LINES), TOTALS, UNITS)
    probabilities = np.exp(TOTALS) / np.exp(TOTALS).sum()
    probability = probabilities[1] + probabilities[2]
    texts = np.array([probabilities[0], probability, probabilities[3]])
    expected = {
        "margin": math.log1p(2.0), "above the mean": 3 - 4.5 / 4, "rank by Moses": math.log(2),
        "distinct texts": math.log(3),
        "type-token ratio": 1,
        "length": math.log1p(4), "inverse length": 0.25, "total per word": 0.75, "characters per word": 1,
        "Moses' total": -2, "Moses' total per word": -0.5,
        "probability, scale 1": probability,
        "entropy, scale 1": -(texts * np.log(texts)).sum(), "L per word": -0.5, "T.0 per word": 0.75,
        "T.0 of the choice": 3,
        "highest L per word": -0.5, "highest T.1 per word": 0.5,
        "L is the best": 1.0, "T.1 is the best": 0.0,
        "posterior of 1-grams, scale 1": (3 * (probabilities[0] + probability) + probability) / 4,
        "posterior of 4-grams, scale 1": probability,
    }  # fmt: skip
    assert {name: choice[name] for name in expected} == pytest.approx(expected)
    assert change["L over Moses' choice"] == 1.0  # 2, in units of 2
    assert change["T.1 over Moses' choice"] == -1.0  # constant on dev, so not scaled
    assert change["total over Moses' choice"] == 2.0
    assert change["consensus over Moses' choice, scale 1"] > 0


def test_consensus_predictors_equal_the_consensus_feature() -> None:
    """Two predictors use the totals of the list, and one uses the values of a feature."""
    lines = [line.replace("e |", "b a x b |") for line in LINES]
    choice, change = predictors(listed(lines), TOTALS, UNITS)
    for name, exponents in (("scale 1", TOTALS), ("scale 4", 4 * TOTALS), ("L", 4 * np.array([-4, -2, -3, -9]) / 2)):
        similarity = consensus(lines, exponents.tolist())
        assert choice[f"consensus, {name}"] == pytest.approx(similarity[1])
        if name != "L":
            gained = change[f"consensus over Moses' choice, {name}"]
            assert gained == pytest.approx(similarity[1] - similarity[0])


def consensus(lines: list[str], totals: list[float]) -> list[float]:
    """Return the values of the consensus feature for candidates with these totals."""
    hypotheses = listed(
        [f"{line.rpartition(' ')[0]} {total!r}" for line, total in zip(lines, totals, strict=True)]
    ).hypotheses
    sentence = Sentence(0, (), tuple(tuple(tokens(each.text)) for each in hypotheses), hypotheses)
    values: list[float] = Consensus("bleu,1", Resources())([sentence])[:, 0].tolist()  # (N, 1)
    return values


def test_similarity_of_the_top_candidates_of_added_features() -> None:
    """T.0 and T.1 have one top candidate each, and L is not an added feature. If two texts tie by T.1, it has none."""
    first, second = [tuple(line.split(" ||| ")[1].split()) for line in (LINES[1], LINES[0])]
    sides = [
        consensus([f"0 ||| {' '.join(text)} ||| L= 0 ||| 0" for text in (one, other)], [-1e9, 0])[0]
        for one, other in ((first, second), (second, first))
    ]
    choice, _ = predictors(listed(LINES), TOTALS, UNITS)
    assert choice["similarity of top candidates"] == pytest.approx(np.mean(sides))
    assert 0 < choice["similarity of top candidates"] < 1
    tied = listed([line.replace("T= 3 1", "T= 3 2") for line in LINES])
    assert predictors(tied, TOTALS, UNITS).choice["similarity of top candidates"] == 1


def test_a_list_with_one_text() -> None:
    choice, change = predictors(listed(LINES[1:3]), TOTALS[1:3], UNITS)
    assert (choice["consensus, scale 1"], choice["probability, scale 4"]) == pytest.approx((1, 1))
    assert (choice["margin"], choice["entropy, scale 1"], change) == (0, pytest.approx(0), {})


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)])
def test_the_order_of_candidates_does_not_matter(order: tuple[int, ...]) -> None:
    one, other = (
        predictors(listed(LINES), TOTALS, UNITS),
        predictors(listed([LINES[index] for index in order]), TOTALS[list(order)], UNITS),
    )
    assert one.choice == pytest.approx(other.choice)
    assert one.change == pytest.approx(other.change)


def test_predictors_are_finite_for_extreme_lists() -> None:
    """An empty text, no totals, scores that differ very much, and a single candidate."""
    lines = ["0 |||  ||| L= 3e38 T= 0 0", "0 ||| a ||| L= -3e38 T= 0 0"]
    for number in (1, 2):
        choice, _ = predictors(listed(lines[:number]), np.array([1e6, -1e6])[:number], UNITS)
        assert all(math.isfinite(value) for value in choice.values())
        assert (choice["consensus, scale 1"], choice["rank by Moses"]) == (0, 0)


def test_changes_are_relative_to_the_moses_output() -> None:
    """The output is the last candidate, while the first has the highest total. L is scaled by 2."""
    _, change = predictors(replace(listed(LINES), moses_output="e"), TOTALS, UNITS)
    assert (change["L over Moses' choice"], change["total over Moses' choice"]) == (3.5, 3.0)


@pytest.mark.parametrize("output", ["a b x d", "none of them"])
def test_no_change_if_the_output_is_the_choice_or_no_candidate(output: str) -> None:
    assert predictors(replace(listed(LINES), moses_output=output), TOTALS, UNITS).change == {}
