"""Measurement of the speed of the machine."""

import numpy as np
import pytest

from features.models import speed
from features.models.cost import TextSize, vocabulary_of
from features.models.settings import Training
from features.models.training.request import TrainingRequest

SMALL = {"hidden_size": 16, "embedding_size": 16, "lexicon": "bias", "bpe": 200}
RECURRENT = TrainingRequest("rnnsearch", settings={**SMALL, "attention_size": 16})
TRANSFORMER = TrainingRequest("transformer", settings={**SMALL, "feedforward_size": 16, "batch_tokens": 500})


@pytest.mark.parametrize("request_", [RECURRENT, TRANSFORMER])
def test_a_slower_clock_gives_larger_speed_factors(request_: TrainingRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a simulated clock, each batch takes first half a second and then a second."""
    now = iter(np.arange(0, 10_000, 0.5))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(now))
    lengths = np.random.default_rng(1).integers(1, 20, (200, 2))
    once = speed.measure_model(request_, lengths, (TextSize(200, 2_000, 150), TextSize(200, 2_000, 150)), "cpu")
    now = iter(np.arange(0, 10_000, 1.0))
    twice = speed.measure_model(request_, lengths, (TextSize(200, 2_000, 150), TextSize(200, 2_000, 150)), "cpu")
    assert 0 < once.training < twice.training < 4 * once.training
    assert 0 < once.forward < twice.forward < 4 * once.forward


def test_the_vocabulary_has_a_maximum_size_and_is_never_empty() -> None:
    text, empty = TextSize(200, 2_000, 150), TextSize(200, 2_000, 0)
    assert [vocabulary_of(Training(vocabulary_size=size), text) for size in (0, 100, 1_000)] == [150, 100, 150]
    assert [vocabulary_of(training, empty) for training in (Training(), Training(vocabulary_size=100))] == [1, 1]
    assert vocabulary_of(Training(bpe=400), empty) == 400


def test_the_speed_is_measured_for_texts_without_repeated_words(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(np.arange(0, 10_000, 0.5))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(now))
    request = TrainingRequest("rnnsearch", settings={"hidden_size": 16, "embedding_size": 16, "attention_size": 16})
    text = TextSize(20, 200, 0)
    factors = speed.measure_model(request, np.random.default_rng(1).integers(1, 20, (20, 2)), (text, text), "cpu")
    assert min(factors.training, factors.forward) > 0
