"""Rules of the architecture, checked in the code."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from features.table import FEATURES

ROOT = Path(__file__).parent.parent
PACKAGES = ["moses_io", "features", "rerank"]
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PYTHON = b"#!/usr/bin/env python3\n"
SCRIPTS = sorted(
    path
    for path in (ROOT / "scripts").rglob("*")
    if path.suffix == ".py" or (not path.suffix and path.is_file() and path.read_bytes().startswith(PYTHON))
)


def imported(path: Path, for_types: bool = True) -> set[str]:
    names, tree = set(), ast.parse(path.read_text(encoding="utf-8"))
    checked = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    excluded = set() if for_types else {each for node in checked for each in ast.walk(node)}
    for node in set(ast.walk(tree)) - excluded:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_import_only_lower_packages(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    above = PACKAGES[PACKAGES.index(package) + 1 :]
    roots = {name.split(".")[0] for name in imported(path)}
    assert not roots & set(above)
    if path.relative_to(ROOT).parts[:2] != ("features", "models"):
        assert "torch" not in roots


def closure(paths: Iterable[Path]) -> tuple[set[str], set[str]]:
    """Follow imports. Return the imported modules of this project, with their packages, and the roots of all others.

    Imports for type checking only are not followed.
    """
    waiting, ours, others = list(paths), set(), set()
    while waiting:
        path = waiting.pop()
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module in ours:
            continue
        ours.add(module)
        for name in imported(path, for_types=False) | {module}:
            parts = name.split(".")
            if parts[0] not in PACKAGES:
                others.add(parts[0])
            for size in range(1, len(parts) + 1) if parts[0] in PACKAGES else ():
                path_of_part = ROOT.joinpath(*parts[:size])
                waiting += [
                    file for file in (path_of_part / "__init__.py", path_of_part.with_suffix(".py")) if file.is_file()
                ]
    return ours, others


def test_tuners_depend_only_on_arrays() -> None:
    """Their direct and indirect imports include no modules for texts, lists, progress or torch."""
    ours, others = closure((ROOT / "rerank" / "tuners").glob("*.py"))
    arrays = {
        "rerank.linear.candidates",
        "rerank.metrics.formula",
        "features.arrays",
        "features.formulas",
        "moses_io.files.errors",
    }
    arrays |= {"features.compiled", "features.ragged"}
    packages = {"rerank", "rerank.linear", "rerank.metrics", "features", "moses_io", "moses_io.files"}
    assert {name for name in ours if not f"{name}.".startswith("rerank.tuners.")} == arrays | packages
    assert others <= sys.stdlib_module_names | {"numpy", "numba", "scipy", "sklearn", "threadpoolctl"}


def test_there_are_no_circular_imports() -> None:
    """Imports inside functions are included, imports for type checking only are not."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    TopologicalSorter(
        {name: imported(path, for_types=False) & set(modules) for name, path in modules.items()}
    ).prepare()


def test_properties_of_feature_kinds_are_fields_of_kind() -> None:
    """Code uses fields of `Kind`. It does not compare names of kinds or keep collections of such names."""
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.MatchValue):
                values = list(ast.walk(node))
            elif isinstance(node, ast.Set | ast.List | ast.Tuple):
                values = list(node.elts)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "endswith"):
                values = list(node.args)
            else:
                continue
            names = {value.value for value in values if isinstance(value, ast.Constant)}
            if names & set(FEATURES):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_names_that_exist(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            module = importlib.import_module(node.module)
            for name in [alias.name for alias in node.names if not hasattr(module, alias.name)]:
                importlib.import_module(f"{node.module}.{name}")


def _lines_without_docstring(function: ast.FunctionDef) -> int:
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_functions_are_short() -> None:
    nodes = [node for path in FILES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if _lines_without_docstring(node) > 45] == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["presets"], ["features"], ["tune", "--help"], ["evaluate", "--help"], ["plot", "--help"]]
)
def test_help_does_not_import_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom rerank.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'kenlm', 'sacrebleu', 'sklearn', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_tuning_selecting_and_evaluating_do_not_import_torch(small: Callable[..., Path]) -> None:
    folder = small(sentences=10, candidates=5)
    code = """
import sys
from rerank.cli import main
assert main("tune dev.nbest --reference dev.en --initial-weights moses.ini --output weights.ini".split()) == 0
assert main("rerank dev.nbest --weights weights.ini --output out".split()) == 0
assert main("evaluate --reference dev.en out".split()) == 0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, cwd=folder)


def test_scoring_does_not_import_the_compiler_of_torch(small: Callable[..., Path], models: dict[str, Path]) -> None:
    """Its import takes as long as that of the rest of torch."""
    folder = small(sentences=3, candidates=2)
    code = f"""
import sys
from rerank.cli import main
assert main("score dev.nbest --source dev.de --feature neural:{models["forward"]} --output out".split()) == 0
assert "torch" in sys.modules and "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)
