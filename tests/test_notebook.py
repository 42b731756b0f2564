"""The notebook of the documentation runs in an empty folder, and its statements are correct."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    shutil.copy(NOTEBOOK, tmp_path)
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs / "jupyter-execute"), NOTEBOOK.name, "--output=executed"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "executed.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
    text = "".join("".join(output.get("text", "")) for output in outputs)
    before, after = (float(score) for score in re.findall(r"BLEU ([0-9.]+) chrF", text))
    assert before == 82.84
    assert after > before + 1
    assert re.search(r"^p-value of the gain in BLEU: (9\.999|0\.000)", text, re.MULTILINE)
    assert re.search(r"^sum +\+", text.replace("  sum", "sum"), re.MULTILINE)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
