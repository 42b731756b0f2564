"""The rules that hold the house up, read from the code itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ["moses_io", "features", "rerank"]
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    above = PACKAGES[PACKAGES.index(package) + 1 :]
    roots = {name.split(".")[0] for name in imported(path)}
    assert not roots & set(above)
    if "models" not in path.parts:
        assert "torch" not in roots


@pytest.mark.parametrize(
    "name",
    ["tuners/kbmira", "tuners/mert", "tuners/pro", "tuners/expected", "tuners/moses", "candidates", "metrics/kernels"],
)
def test_tuners_see_no_text_but_the_list_and_no_torch(name: str) -> None:
    names = imported(ROOT / "rerank" / f"{name}.py")
    assert not any(found.startswith(("moses_io.text", "moses_io.streams", "features.models")) for found in names)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["presets"], ["features"], ["tune", "--help"], ["evaluate", "--help"]]
)
def test_help_does_not_import_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom rerank.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'kenlm', 'sacrebleu', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_tuning_selecting_and_evaluating_do_not_import_torch(sample: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from rerank.cli import main
nbest, reference = {str(sample / "dev.nbest.gz")!r}, {str(sample / "dev.en")!r}
start = {str(sample / "moses.ini")!r}
weights, out = {str(tmp_path / "w.ini")!r}, {str(tmp_path / "out")!r}
assert main(["tune", nbest, "--reference", reference, "--start", start, "--output", weights]) == 0
assert main(["rerank", nbest, "--weights", weights, "--output", out]) == 0
assert main(["evaluate", "--reference", reference, out]) == 0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
