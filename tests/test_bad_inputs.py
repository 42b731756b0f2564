"""Whatever a command is given: no traceback, no hang, no memory without end, no half file, one line of reason."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_bad_inputs_end_well(tmp_path: Path) -> None:
    """A twelfth of them; `.ci/run` tries them all."""
    words = [sys.executable, Path(__file__).parent / "bad_inputs", tmp_path, "--every", "12"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
