"""Groups of candidates that models score in one batch: their size is bounded."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import features.groups as features_groups
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.groups import groups
from features.request import parse_requests

SHAPES = st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=8)), max_size=8)


def made(shapes: list[tuple[int, list[int]]]) -> list[Sentence]:
    """Return sentences with these source and candidate lengths. The first word of a candidate identifies it."""
    return [
        Sentence(number, ("x",) * length, tuple((f"{number}-{place}", *["a"] * n) for place, n in enumerate(lengths)))
        for number, (length, lengths) in enumerate(shapes)
    ]


@given(SHAPES, st.integers(1, 12), st.integers(1, 600), st.integers(1, 40))
def test_groups_are_bounded_and_contain_every_candidate_once(
    shapes: list[tuple[int, list[int]]], size: int, cells: int, positions: int
) -> None:
    sentences = made(shapes)
    everyone = [hypothesis for each in sentences for hypothesis in each.hypotheses]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_groups, "CELLS", cells)
        patch.setattr(features_groups, "POSITIONS", positions)
        found = list(groups(sentences, size))
    places = [place for group in found for place in group.indices]
    assert sorted(places) == list(range(len(everyone)))
    for group in found:
        held = [hypothesis for each in group.sentences for hypothesis in each.hypotheses]
        assert held == [everyone[place] for place in group.indices]
        source = max(len(each.source) + 2 for each in group.sentences)
        if len(group.sentences) > 1:
            assert len(held) <= size and len(group.sentences) * source <= positions
        if len(held) > 1:
            assert len(held) * source * max(len(hypothesis) + 2 for hypothesis in held) <= cells


def test_ordinary_batches_are_split_between_sentences_only() -> None:
    sentences = made([(40, [40] * 100)] * 100)
    assert [len(group.indices) for group in groups(sentences, 4096)] == [4000, 4000, 2000]
    assert all(len(each.hypotheses) == 100 for group in groups(sentences, 4096) for each in group.sentences)


@pytest.mark.parametrize(
    "text", ["neural:{forward}[logprob,coverage]", "neural:{backward}", "agreement:{forward},{backward}"]
)
def test_splitting_does_not_change_the_values(
    text: str, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    features = FeatureSet(parse_requests([text.format(**models)]), Resources("cpu"))
    sentences = made([(6, [5, 2, 7, 5, 1]), (1, [3, 3]), (4, [9])])
    whole = features.score(sentences).columns[0].values
    monkeypatch.setattr(features_groups, "CELLS", 150)
    monkeypatch.setattr("features.models.scoring.pairs.CELLS", 2000)
    assert len(list(groups(sentences, 4096))) > 4
    np.testing.assert_allclose(features.score(sentences).columns[0].values, whole, atol=1e-5)
