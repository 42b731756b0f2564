"""Shared prefixes do not change scores."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features.feature import Reading, Sentence
from features.models.folder import Model
from features.models.network import paths as network_paths
from features.models.network.paths import blocks_of
from features.models.scoring import walk
from features.models.scoring.pairs import score_one_by_one
from features.models.scoring.prefixes import paths_of, prefix_tree
from features.models.scoring.preparation import fuse_context_weights, lower
from features.models.scoring.tree import score_tree
from features.models.scoring.values import FLOOR, SourceWords, of_tokens, select, total
from features.models.settings import Architecture
from features.models.tables import VALUES
from features.models.vocabulary import END

CPU = torch.device("cpu")
WORDS = list("abcdefg")

targets = st.lists(st.lists(st.integers(4, 6), max_size=5), min_size=1, max_size=6)


@given(st.lists(targets, min_size=1, max_size=4))
def test_the_tree_contains_every_prefix_once_and_every_candidate(sentences: list[list[list[int]]]) -> None:
    owners = [number for number, candidates in enumerate(sentences) for _ in candidates]
    candidates = [candidate for sentence in sentences for candidate in sentence]
    found, prefixes = {}, []
    before: list[tuple[int, ...]] = []
    levels = list(prefix_tree(owners, candidates))
    for depth, level in enumerate(levels):
        assert (np.diff(level.sources) >= 0).all() and (np.diff(level.nodes) >= 0).all()
        names = [
            (*(before[parent] if depth else (source,)), *([word] if depth else []))
            for source, word, parent in zip(level.sources, level.words, level.parents, strict=True)
        ]
        prefixes += names
        for candidate, end in zip(level.ended, level.ends, strict=True):
            assert level.next_words[end] == END
            found[candidate] = names[level.nodes[end]]
        before = names
    for candidate, path in enumerate(paths_of(levels, len(candidates))):
        whole = found[candidate]
        assert [prefixes[node] for node in path] == [whole[: end + 1] for end in range(len(whole))]
    assert found == {n: (owner, *candidates[n]) for n, owner in enumerate(owners)}
    wanted = {(owner, *candidates[n][:end]) for n, owner in enumerate(owners) for end in range(len(candidates[n]) + 1)}
    assert len(prefixes) == len(set(prefixes)) and set(prefixes) == wanted


def sentences(seed: int) -> list[Sentence]:
    rng = random.Random(seed)

    def words(longest: int) -> tuple[str, ...]:
        return tuple(rng.choice(WORDS) for _ in range(rng.randint(0, longest)))

    stems = [words(4) for _ in range(3)]
    return [
        Sentence(number, words(6), tuple(rng.choice(stems) + words(3) for _ in range(rng.randint(1, 8))))
        for number in range(3)
    ]


def test_values_equal_those_of_single_candidates(
    architecture: Architecture, make_model: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_values([make_model(architecture, seed=seed) for seed in (1, 2)], monkeypatch)


@pytest.mark.parametrize(
    "architecture", ["encdec", "rnnsearch", "cohn-align", "yang-window11", "gnmt", "transformer"], indirect=True
)
@pytest.mark.parametrize("right_to_left", [False, True])
def test_values_of_one_model_in_both_word_orders(
    architecture: Architecture, make_model: Callable[..., Model], monkeypatch: pytest.MonkeyPatch, right_to_left: bool
) -> None:
    check_values([make_model(architecture, seed=1, right_to_left=right_to_left)], monkeypatch)


def matrix(reading: Reading) -> np.ndarray:
    return np.stack(list(reading.values.values()), axis=1)  # (N, names)


def check_values(models: list[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    lists = sentences(3)
    apart = [replace(each, hypotheses=(hypothesis,)) for each in lists for hypothesis in each.hypotheses]
    objectives = models[0].config.architecture.objectives
    names = [name for name in VALUES if name != "fertility" or "fertility" in objectives]
    alone = np.concatenate([matrix(score_one_by_one(models, [one], names)) for one in apart])
    for each in models:
        fuse_context_weights(each.network)
    scores = score_tree(models, lists, names)
    np.testing.assert_allclose(matrix(scores), alone, atol=1e-4)
    assert scores.steps.computed < scores.steps.separate == sum(len(one.hypotheses[0]) + 1 for one in apart)
    turned = [replace(each, hypotheses=each.hypotheses[::-1]) for each in lists[::-1]]
    monkeypatch.setattr(walk, "MEMORY", {"cpu": 1})  # a node at a time
    np.testing.assert_allclose(matrix(score_tree(models, turned, names))[::-1], alone, atol=1e-4)
    monkeypatch.undo()
    for each in models:
        lower(each.network, stepwise=True)
    lowered = matrix(score_tree(models, lists, ["logprob"]))
    assert 1e-6 < np.abs(lowered - alone[:, :1]).max() < 0.5


def test_values_by_hand() -> None:
    log_probs, unknown = torch.tensor([[-1.0, -2.0, -4.0]]), torch.tensor([[False, True, False]])
    attention = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.0, 0.8]]])
    sums = total(of_tokens(log_probs, unknown, attention))
    expected = (torch.tensor([[1.0, 1.0, 9.0]]), torch.tensor([[0.5, 2.0, 1.0]]))
    words = SourceWords(torch.tensor([[True, True, False]]), expected)
    found = dict(zip(VALUES, select(list(VALUES), sums, words)[0].tolist(), strict=True))
    entropy = math.log(2) - 0.2 * math.log(0.2) - 0.8 * math.log(0.8)
    density = [-0.5 * (error**2 / v + math.log(2 * math.pi * v)) for error, v in ((0.7, 0.5), (-0.5, 2.0))]
    wanted = {"logprob": -7, "known": -5, "unknown": 1, "worst": -4, "worst3": -7 / 3, "entropy": entropy}
    wanted |= {"coverage": math.log(0.5), "deviation": -(0.7**2) - 0.5**2, "fertility": sum(density)}
    assert found == pytest.approx(wanted, abs=1e-6)
    nowhere = sums._replace(attention=torch.zeros_like(sums.attention))
    assert float(select(["coverage"], nowhere, words)) == pytest.approx(2 * math.log(FLOOR))


def test_missing_lowest_probabilities_are_0() -> None:
    """A translation with fewer tokens than are kept, added up at once and token by token."""
    log_probs, unknown = torch.tensor([[-0.5, -2.0]]), torch.tensor([[False, False]])
    tokens = of_tokens(log_probs, unknown, torch.ones(1, 2, 1))
    first, second = (type(tokens)(*(part[:, place] for part in tokens)) for place in (0, 1))
    for sums in (total(tokens), first.plus(second)):
        assert sums.worst.tolist() == [[-2.0, -0.5, 0.0]]


@pytest.fixture(params=[2, 256])
def longest(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_paths, "MAX_NEW_NODES", request.param)
        yield request.param


@given(st.lists(targets, min_size=1, max_size=4), st.integers(1, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_compute_every_node_once_with_its_path(
    longest: int, sentences: list[list[list[int]]], size: int
) -> None:
    owners = [number for number, candidates in enumerate(sentences) for _ in candidates]
    candidates = [candidate for sentence in sentences for candidate in sentence]
    levels = list(prefix_tree(owners, candidates))
    paths = paths_of(levels, len(candidates))
    above = {int(node): path[: place + 1].tolist() for path in paths for place, node in enumerate(path)}
    computed: list[int] = []
    for block in blocks_of(paths, size, CPU):
        assert block.positions.shape[1] <= longest
        keys = block.keys.view(len(block.positions), -1)  # (P, T)
        assert keys.numel() <= size or len(keys) == 1
        allowed = (block.bias == 0).flatten(0, 1)  # (P·M, T)
        for row, node in zip(block.computed.tolist(), block.nodes.tolist(), strict=True):
            assert int(block.queries[row]) == node
            assert keys[row // block.positions.shape[1]][allowed[row]].tolist() == above[node]
        computed += block.nodes.tolist()
    assert sorted(computed) == sorted(above)
