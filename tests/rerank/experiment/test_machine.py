"""Measurement of the speed of the machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from features.models.cost import TextSize, TimeFactors
from features.models.training.request import TrainingRequest
from rerank.experiment import machine


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system measures no waiting time")
def test_waiting_time_rises_while_another_process_uses_the_same_core() -> None:
    cores = os.sched_getaffinity(0)
    core = {min(cores)}
    other = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {core})\nwhile True: pass"])
    try:
        os.sched_setaffinity(0, core)  # of this thread
        first, end = machine.waiting_time(), time.monotonic() + 60
        while machine.waiting_time() < first + 0.01 and time.monotonic() < end:
            sum(range(10_000))
        assert machine.waiting_time() >= first + 0.01
    finally:
        os.sched_setaffinity(0, cores)
        other.kill()
        other.wait()


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
    assert capsys.readouterr().err.count("other programs use the cores: this one waited") == messages
