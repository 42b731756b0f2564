"""Scoring and translation on the simulated GPU: every architecture, both precisions."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from features.feature import Sentence
from features.models.decoding.search import Beam, search
from features.models.folder import Model
from features.models.scoring.pairs import score_one_by_one
from features.models.scoring.preparation import fuse_context_weights, lower
from features.models.scoring.tree import score_tree
from features.models.settings import Architecture
from features.models.vocabulary import END

CUDA = torch.device("cuda")
SENTENCES = [
    Sentence(0, ("a", "b"), (("c",), ("c", "e", "f"))),
    Sentence(1, ("a",), (("d",), ("z", "e", "c"))),
]
"""The prefix tree has four levels. Candidates of both sentences have the same lengths, so they share batches."""
NAMES = ["logprob", "unknown", "worst3", "entropy", "coverage"]


@pytest.fixture
def model(accelerator: Any, architecture: Architecture, precision: Any, make_model: Callable[..., Model]) -> Model:
    """A model on the simulated GPU, prepared for scoring and translation."""
    model = replace(make_model(architecture, 1), device=CUDA)
    model.network.to(CUDA)
    fuse_context_weights(model.network)
    if precision.low:
        lower(model.network, stepwise=True)
    accelerator.waits.clear()
    return model


@pytest.mark.parametrize("attention", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_scoring_with_a_prefix_tree(
    accelerator: Any, model: Model, of_encoding: Counter[str], precision: Any, attention: bool
) -> None:
    scores = score_tree([model], SENTENCES, NAMES, attention)
    assert {name: (each.shape, each.dtype) for name, each in scores.values.items()} == dict.fromkeys(
        NAMES, ((4,), np.float64)
    )
    assert [rows.shape for rows in scores.attention] == ([(2, 4), (4, 4), (2, 3), (4, 3)] if attention else [])
    # One copy of the values at the end. If attention is needed, one copy after each of the four levels.
    assert accelerator.waits == of_encoding + Counter(down=1 + 4 * attention)
    assert set(accelerator.products) == precision.kinds


@pytest.mark.parametrize(
    "architecture", ["rnnsearch", "luong-local-p-dot", "transformer", "lexicon-mixture", "choi-atty2d"], indirect=True
)
def test_scoring_without_a_prefix_tree(
    accelerator: Any,
    architecture: Architecture,
    of_encoding: Counter[str],
    precision: Any,
    make_model: Callable[..., Model],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = replace(make_model(architecture, 1), device=CUDA)
    model.network.to(CUDA)
    if precision.low:
        lower(model.network, stepwise=False)
    accelerator.waits.clear()
    monkeypatch.setattr("features.models.scoring.pairs.BATCH", 2)
    scores = score_one_by_one([model], SENTENCES, NAMES)
    assert {name: each.shape for name, each in scores.values.items()} == dict.fromkeys(NAMES, (4,))
    twice = Counter({name: 2 * count for name, count in of_encoding.items()})
    assert accelerator.waits == twice + Counter(down=1)  # the values, after two batches


GREEDY = pytest.param(1, 2, marks=pytest.mark.slow, id="greedy")


@pytest.mark.parametrize(("size", "steps"), [GREEDY, pytest.param(3, 3, id="beam")])
def test_search_copies_twice_per_step_to_the_cpu(
    accelerator: Any, model: Model, of_encoding: Counter[str], size: int, steps: int
) -> None:
    taken: list[Tensor] = []

    def best_words(there: Tensor) -> Tensor:
        """Return words of each prefix, best first. None is `</s>` in the first step, then `</s>` is the best."""
        if there.dim() == 1:  # lengths of the sources, for the encoder
            return torch.ones(there.shape, dtype=there.dtype)
        ranks = torch.arange(there.shape[-1]).expand(there.shape)
        if there.is_floating_point():
            taken.append(there)
            return -1.0 - ranks
        return ranks + (END if len(taken) > 1 else END + 1)

    accelerator.answer = best_words
    found = search([model], [each.source for each in SENTENCES], [9, 9], Beam(size, size))
    assert [len(ends) for ends in found] == [size, size]
    assert len(taken) == steps and taken[-1].dtype == torch.float64
    # Each step copies the words and their log p to the CPU, which selects prefixes of a source.
    assert accelerator.waits == of_encoding + Counter(down=2 * steps)
