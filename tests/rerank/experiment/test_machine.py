"""Measurement of the speed of the machine."""

import json
from pathlib import Path

import numpy as np
import pytest

from features.models.cost import TextSize, TimeFactors
from features.models.training.request import TrainingRequest
from rerank.experiment import machine


def test_waiting_time_of_a_thread_never_decreases() -> None:
    first = machine.waiting_time()
    sum(range(10**6))
    assert 0 <= first <= machine.waiting_time()


@pytest.mark.usefixtures("progress")
@pytest.mark.parametrize(("waited", "messages"), [(0.0, 0), (1000.0, 1)])
def test_waiting_for_other_programs_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], waited: float, messages: int
) -> None:
    times = iter([0.0, waited])
    monkeypatch.setattr(machine, "waiting_time", lambda: next(times))
    monkeypatch.setattr("features.models.speed.measure_model", lambda *_: TimeFactors(training=2.0))
    sizes = TextSize(1, 1, 1), TextSize(1, 1, 1)
    machine._write_factors(TrainingRequest("rnnsearch"), np.zeros((1, 2), int), sizes, "cpu", str(tmp_path / "factors"))
    assert json.loads((tmp_path / "factors").read_text())["training"] == 2.0
    assert capsys.readouterr().err.count("other programs make this one wait") == messages
