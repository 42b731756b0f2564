"""Encoding candidates together, with shared prefixes, gives the same encodings as encoding them separately."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from features.models.folder import Model
from features.models.scoring import shared
from features.models.scoring.shared import Encodings, SharedEncodings, encodings_of, prefixes, spans
from features.models.settings import Architecture

sequences = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5), min_size=1, max_size=8)


@given(sequences)
def test_each_prefix_is_one_node(rows: list[list[int]]) -> None:
    lengths = np.array([len(row) for row in rows])
    ids = np.array([row + [0] * (int(lengths.max()) - len(row)) for row in rows])
    tree = prefixes(ids, lengths)
    names: list[tuple[int, ...]] = []
    before: list[tuple[int, ...]] = [()]
    for parents, words in tree.levels:
        before = [(*before[parent], int(word)) for parent, word in zip(parents, words, strict=True)]
        names += before
    assert len(names) == len(set(names)) == len({tuple(row[: end + 1]) for row in rows for end in range(len(row))})
    for row, nodes in zip(rows, tree.nodes, strict=True):
        assert [names[node] for node in nodes[: len(row)]] == [tuple(row[: end + 1]) for end in range(len(row))]


def candidates(seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    stems = [[rng.choice("abcdefg") for _ in range(rng.randint(0, 4))] for _ in range(4)]
    return [rng.choice(stems) + rng.choice(stems) for _ in range(12)]


def test_shared_encodings_equal_those_of_single_sources(
    architecture: Architecture, make_model: Callable[..., Model]
) -> None:
    """Prefixes are shared by bidirectional encoders of one layer, unless word vectors depend on the whole sentence."""
    model = make_model(architecture, seed=1)
    sources, numbers = candidates(1), [3, 0, 7, 3, 11]
    together = encodings_of(model, sources, shared=True)
    single = architecture.encoder == "bidirectional" and architecture.encoder_layers == 1
    shares = single and not architecture.contextual_embeddings
    assert type(together) is (SharedEncodings if shares else Encodings)
    with torch.inference_mode():
        mine, alone = together.batch(numbers), Encodings(model, sources).batch(numbers)
    for ours, theirs in zip((mine.states, mine.keys, mine.bias, mine.source_length), alone, strict=False):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(mine.last, alone.last, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ["rnnsearch"], indirect=True)
@pytest.mark.parametrize("changes", [{"cell": "gru"}, {"cell": "rnn"}, {"initial_state": "learned"}])
def test_shared_encodings_with_other_cells_and_initial_states(
    architecture: Architecture, make_model: Callable[..., Model], changes: dict[str, Any]
) -> None:
    model = make_model(replace(architecture, **changes), seed=2)
    sources, numbers = candidates(2), [1, 2, 5]
    with torch.inference_mode():
        together, alone = (encodings_of(model, sources, way) for way in (True, False))
        assert (type(together), type(alone)) == (SharedEncodings, Encodings)
        shared_states, states = (each.batch(numbers).states for each in (together, alone))
    torch.testing.assert_close(shared_states, states, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ["rnnsearch"], indirect=True)
def test_spans_are_bounded(
    make_model: Callable[..., Model], architecture: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(architecture, seed=1)
    monkeypatch.setattr(shared, "BYTES", 4 * model.network.annotation * 9)
    found = list(spans([model], [["a"] * count for count in (3, 2, 20, 1, 1, 1)]))
    assert found == [slice(0, 2), slice(2, 3), slice(3, 6)]
