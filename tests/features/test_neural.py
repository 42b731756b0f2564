"""What one number of a model, or of several, is made of."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from features.feature import Candidates
from features.models.batches import pad
from features.models.folder import ModelConfig, load_model
from features.models.scoring import by_word, score_pairs
from features.models.settings import Architecture, Training
from features.models.training import train
from features.neural import Ensemble, Neural
from moses_io.errors import InputError

CPU = torch.device("cpu")
SOURCE = ("das", "neue", "Haus")
SENTENCE = Candidates(0, SOURCE, (("the", "new", "house"), ("the", "newest", "house", "house"), ()))
TEXT = [
    (["das", "neue", "Haus"], ["the", "new", "house"]),
    (["die", "neueren", "Häuser"], ["the", "newer", "houses"]),
] * 8


def make(folder: Path, direction: str = "forward", right_to_left: bool = False, **settings: int) -> Path:
    architecture = Architecture(embedding=6, hidden=8, attention=6)
    training = Training(**{"epochs": 1, "rate": 0.01, "batch": 4} | settings)  # type: ignore[arg-type]
    pairs = TEXT if direction == "forward" else [pair[::-1] for pair in TEXT]
    train([ModelConfig("rnnsearch", direction, architecture, training, right_to_left)], pairs, pairs, folder, CPU)
    return folder


def log_probs(folder: Path, target: list[int]) -> torch.Tensor:
    """(J,) of a target in the model's own numbers and order."""
    model = load_model(folder, CPU)
    encoded = model.network.encode(pad([model.source.encode(SOURCE)], CPU))
    return model.network.score(encoded, pad([target], CPU)).log_probs[0]


def test_an_ensemble_is_the_mean_of_the_distributions_word_by_word(tmp_path: Path) -> None:
    folders = [make(tmp_path / f"{seed}", seed=seed, epochs=seed) for seed in (1, 2, 3)]
    values = Ensemble(",".join(map(str, folders)), "cpu")([SENTENCE])
    for row, hypothesis in enumerate(SENTENCE.hypotheses):
        target = load_model(folders[0], CPU).target.encode(hypothesis)
        probabilities = [log_probs(folder, target).exp() for folder in folders]
        wanted = sum(math.log(float(sum(at)) / 3) for at in zip(*probabilities, strict=True))
        assert values[row, 0] == pytest.approx(wanted, abs=1e-5)
    twice = Ensemble(f"{folders[0]},{folders[0]}", "cpu")([SENTENCE])
    np.testing.assert_allclose(twice, Neural(str(folders[0]), "cpu")([SENTENCE]), atol=1e-5)


def test_models_that_make_no_ensemble(tmp_path: Path) -> None:
    first = make(tmp_path / "first")
    for other, reason in (
        (make(tmp_path / "back", "backward"), "another direction"),
        (make(tmp_path / "right", right_to_left=True), "another order of words"),
        (make(tmp_path / "words", frequency=9), "another target vocabulary"),
    ):
        with pytest.raises(InputError, match=f"{other.name}: {reason} than .*first; use one feature 'neural' a model"):
            Ensemble(f"{first},{other}", "cpu")
    with pytest.raises(InputError, match="expected several models, separated by commas"):
        Ensemble(str(first), "cpu")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_right_to_left_model_reads_the_target_from_its_end(tmp_path: Path, direction: str) -> None:
    folder = make(tmp_path / "model", direction, right_to_left=True)
    model = load_model(folder, CPU)
    assert "|order:right-to-left|" in model.signature
    sides = (SOURCE, SENTENCE.hypotheses[0])
    source, target = sides if direction == "forward" else sides[::-1]
    encoded = model.network.encode(pad([model.source.encode(source)], CPU))
    found = model.network.score(encoded, pad([model.target.encode(target)[::-1]], CPU)).log_probs.sum()
    assert Neural(str(folder), "cpu")([SENTENCE])[0, 0] == pytest.approx(float(found), abs=1e-5)


@pytest.mark.parametrize("right_to_left", [False, True])
def test_pieces_sum_to_words(tmp_path: Path, right_to_left: bool) -> None:
    folder = make(tmp_path / "model", bpe=30, right_to_left=right_to_left)
    model = load_model(folder, CPU)
    hypothesis = SENTENCE.hypotheses[1]
    numbers, spans = model.target.encode(hypothesis), model.target.spans(hypothesis)
    assert len(numbers) > len(hypothesis)
    values = log_probs(folder, numbers[::-1] if right_to_left else numbers)
    words = by_word(values, spans, right_to_left)
    assert words.shape == (len(hypothesis) + 1,)
    assert Neural(str(folder), "cpu")([SENTENCE])[1, 0] == pytest.approx(float(words.sum()), abs=1e-5)
    start = len(numbers) - spans[0] if right_to_left else 0
    assert float(words[0]) == pytest.approx(float(values[start : start + spans[0]].sum()), abs=1e-6)
    assert by_word(values[-1:], [], right_to_left).tolist() == [float(values[-1])]


def test_perplexity_is_per_word_whatever_the_pieces(tmp_path: Path) -> None:
    import json

    folder = make(tmp_path / "model", bpe=30)
    (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    pairs = [(tuple(source), tuple(target)) for source, target in TEXT]
    total = sum(float(scores.log_probs.sum()) for _, scores in score_pairs([load_model(folder, CPU)], pairs))
    words = sum(len(target) + 1 for _, target in pairs)
    assert row["dev_perplexity"] == pytest.approx(math.exp(-total / words), rel=1e-5)
