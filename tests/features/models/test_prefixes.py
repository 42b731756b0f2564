"""Sharing prefixes changes no score."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from features.models.folder import Model, ModelConfig
from features.models.model import EncoderDecoder
from features.models.prefixes import prefix_tree
from features.models.scoring import Sentence, log_probabilities, score_pairs
from features.models.settings import Architecture, Training
from features.models.vocabulary import END, Vocabulary

CPU = torch.device("cpu")
WORDS = list("abcdefg")

targets = st.lists(st.lists(st.integers(4, 6), max_size=5), min_size=1, max_size=6)


@given(st.lists(targets, min_size=1, max_size=4))
def test_the_tree_has_every_prefix_once_and_every_candidate(sentences: list[list[list[int]]]) -> None:
    owners = [number for number, candidates in enumerate(sentences) for _ in candidates]
    candidates = [candidate for sentence in sentences for candidate in sentence]
    found, prefixes = {}, []
    before: list[tuple[int, ...]] = []
    for depth, level in enumerate(prefix_tree(owners, candidates)):
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
    assert found == {n: (owner, *candidates[n]) for n, owner in enumerate(owners)}
    wanted = {(owner, *candidates[n][:end]) for n, owner in enumerate(owners) for end in range(len(candidates[n]) + 1)}
    assert len(prefixes) == len(set(prefixes)) and set(prefixes) == wanted


def model(architecture: Architecture, seed: int, right_to_left: bool = False) -> Model:
    vocabulary = Vocabulary(WORDS[:-1])
    torch.manual_seed(seed)
    network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary)).eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    config = ModelConfig("x", "forward", architecture, Training(), right_to_left)
    return Model(config, network, vocabulary, vocabulary, CPU, str(Path()))


def sentences(seed: int) -> list[Sentence]:
    rng = random.Random(seed)

    def words(longest: int) -> tuple[str, ...]:
        return tuple(rng.choice(WORDS) for _ in range(rng.randint(0, longest)))

    stems = [words(4) for _ in range(3)]
    return [(words(6), [rng.choice(stems) + words(4) for _ in range(rng.randint(1, 12))]) for _ in range(5)]


@pytest.mark.parametrize("right_to_left", [False, True])
def test_scores_are_those_of_candidates_one_by_one(architecture: Architecture, right_to_left: bool) -> None:
    one = model(architecture, 1, right_to_left)
    for models in ([one], [one, model(architecture, 2, right_to_left)]):
        lists = sentences(3)
        pairs = [(source, candidate) for source, candidates in lists for candidate in candidates]
        alone = [float(scores.log_probs.double().sum()) for pair in pairs for _, scores in score_pairs(models, [pair])]
        np.testing.assert_allclose(log_probabilities(models, lists), alone, atol=1e-4)
        turned = [(source, candidates[::-1]) for source, candidates in lists[::-1]]
        np.testing.assert_allclose(log_probabilities(models, turned)[::-1], alone, atol=1e-4)
