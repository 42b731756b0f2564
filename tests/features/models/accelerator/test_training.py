"""Training on the simulated GPU: every architecture, every objective, both precisions."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from features.models.config import ModelConfig
from features.models.network.lexicon import Lexicon
from features.models.network.model import Objective
from features.models.settings import Architecture, Training
from features.models.training.checkpoint import Run
from features.models.training.epoch import _update
from features.models.training.learner import Learner, loss_of
from features.models.training.preparation import Task, begin_run
from features.models.vocabulary import END
from moses_io.alignment import Alignment

CUDA = torch.device("cuda")
PAIRS = [(["a"], ["A", "B"]), (["b", "a"], ["A"])]
LINKS = [frozenset({(0, 0), (0, 1)}), frozenset({(1, 0)})]
ADDITIVE = Architecture(embedding_size=4, hidden_size=5, attention_size=6, attention_terms=("position", "markov"))
UPDATE = Counter(nonzero=1, down=1)
"""Waits of an update: the number of words without padding, and the loss for the progress display."""


def begin(
    folder: Path,
    architecture: Architecture,
    directions: Sequence[str] = ("forward",),
    links: Sequence[Alignment] = (),
    **settings: Any,
) -> Run:
    training = Training(**{"min_frequency": 1} | settings)
    models = [ModelConfig("x", direction, architecture, training) for direction in directions]
    return begin_run(Task(models, PAIRS, PAIRS, folder, CUDA, links), False)


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[Objective]:
    """Outputs of all learners during a test, in a list that is filled while they run."""
    forward, seen = Learner.forward, []

    def watched(*arguments: Any) -> Objective:
        seen.append(forward(*arguments))
        return seen[-1]

    monkeypatch.setattr(Learner, "forward", watched)
    return seen


def check(run: Run, outcomes: list[Objective], passes: int = 1) -> None:
    """Check types, shapes and devices after an update with pairs of 3 and 2 target tokens."""
    positions = 2 if run.learners[0].config.architecture.language_model else 4  # `<s>` and `</s>`, and two source words
    for outcome, steps in zip(outcomes, (3, 3), strict=False):
        assert {outcome.loss.dtype, outcome.plain.dtype, outcome.bonus.dtype} == {torch.float32}
        assert outcome.loss.shape == outcome.plain.shape == outcome.bonus.shape == ()
        assert outcome.rows.shape == (steps, 2 * passes, positions)
        assert {part.device for part in outcome} == {CUDA}
    for weight in run.parameters:
        assert weight.device == CUDA and weight.dtype == torch.float32
        assert weight.grad is None or (weight.grad.dtype, weight.grad.shape) == (weight.dtype, weight.shape)
    assert any(weight.grad is not None for weight in run.parameters)


def test_update_of_every_architecture(
    accelerator: Any,
    tmp_path: Path,
    outcomes: list[Objective],
    architecture: Architecture,
    of_encoding: Counter[str],
    precision: Any,
) -> None:
    run = begin(tmp_path, architecture, bfloat16=precision.low)
    accelerator.waits.clear()
    _update(run, [[0, 1]], 0.1)
    assert accelerator.waits == UPDATE + of_encoding
    lowest = torch.bfloat16 if precision.low else torch.float32
    assert {lowest} <= set(accelerator.products) <= precision.kinds
    check(run, outcomes)


OBJECTIVES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "label_smoothing": ({"label_smoothing": 0.1}, {}),
    "word dropout": ({"word_dropout": 0.2}, {}),
    "sgd": ({"optimizer": "sgd"}, {}),
    "R-drop": ({"r_drop": 1.0}, {"nonzero": 1}),  # the divergence counts the words of one pass
    "guided_alignment": ({"guided_alignment": 0.5, "links": LINKS}, {}),
    "both directions": ({"directions": ("forward", "backward")}, {"nonzero": 1}),  # each direction counts its words
    "both, guided": (
        {"directions": ("forward", "backward"), "links": LINKS, "guided_alignment": 0.5, "dropout": 0.2},
        {"nonzero": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "more"), OBJECTIVES.values(), ids=OBJECTIVES)
def test_update_with_every_objective(
    accelerator: Any,
    tmp_path: Path,
    outcomes: list[Objective],
    settings: dict[str, Any],
    more: dict[str, int],
    precision: Any,
) -> None:
    run = begin(tmp_path, ADDITIVE, bfloat16=precision.low, **settings)
    accelerator.waits.clear()
    _update(run, [[0, 1]], 0.1)
    assert accelerator.waits == UPDATE + Counter(more)
    check(run, outcomes, passes=2 if "r_drop" in settings else 1)


def test_an_update_of_several_batches_copies_the_loss_once(accelerator: Any, tmp_path: Path) -> None:
    run = begin(tmp_path, ADDITIVE)
    accelerator.waits.clear()
    _update(run, [[0], [1], [0, 1]], 0.1)
    assert accelerator.waits == Counter(nonzero=3, down=1)


def test_loss_on_dev(accelerator: Any, tmp_path: Path) -> None:
    run = begin(tmp_path, ADDITIVE)
    accelerator.waits.clear()
    assert loss_of(run.learners[0], run.dev[0], CUDA) == 1
    assert accelerator.waits == Counter(nonzero=1, item=1)


def test_a_lexicon_is_copied_in_two_tensors(accelerator: Any, translations: Any) -> None:
    lexicon = Lexicon(20, mixes=False).to(CUDA)
    accelerator.waits.clear()
    lexicon.fill(translations({word: {word: 0.6, END: 0.4} for word in range(4, 20)}))
    assert accelerator.waits == Counter(up=2)  # words and probabilities
