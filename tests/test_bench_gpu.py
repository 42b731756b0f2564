"""The GPU benchmark script, run on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "lab" / "bench_gpu", *arguments]
    variables = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | variables)


@pytest.mark.slow
def test_bench_gpu_measures_all_rows(tmp_path: Path, sample: Path) -> None:
    ran = run(sample, "--device", "cpu", "--quick", "--json", tmp_path / "figures")
    assert ran.returncode == 0, ran.stderr
    assert "not results of a GPU" in ran.stdout
    figures = json.loads((tmp_path / "figures").read_text())
    values = {row["measurement"]: row["value"] for row in figures["rows"]}
    lines = [line.split(" | ") for line in ran.stdout.split("\n") if line.startswith("| ")]
    assert [line[0].removeprefix("| ") for line in lines[1:]] == list(values)
    assert {name.split(", ")[0] for name in values} == {"values", "train", "score", "translate"}
    assert values.pop("values, forward, fp32") == values.pop("values, backward, fp32") == 0
    assert all(value > 0 for value in values.values())
    assert [line[0] for line in lines if "1,000,000" in line[-1]] == ["| score, naive, bf16"]


@pytest.mark.slow
def test_bench_gpu_without_a_gpu_is_an_error(sample: Path) -> None:
    ran = run(sample)
    wanted = "bench_gpu: --device cuda: torch sees no GPU here. Use auto or cpu\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", wanted)
