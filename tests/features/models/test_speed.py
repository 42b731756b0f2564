"""Measurement of the speed of the machine."""

import numpy as np
import pytest

from features.models import speed
from features.models.cost import TextSize
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
