"""Compiled code is cached in a writable folder, and a stale or damaged cache does no harm."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numba
import pytest

SOURCE = """\
from typing import NamedTuple
from features.compiled import compiled

class {name}(NamedTuple):
    first: float
    second: float

@compiled()
def added(record):
    return record.first + record.second

def call():
    return added({name}(1.0, 2.0))
"""

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Return a function that writes and imports a module with one compiled function on a record of the given name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str) -> ModuleType:
        sys.modules.pop("of_records", None)
        (tmp_path / "of_records.py").write_text(SOURCE.format(name=name))
        importlib.invalidate_caches()
        return importlib.import_module("of_records")

    yield write
    sys.modules.pop("of_records", None)


def test_code_for_a_renamed_record_is_compiled_again(load: Load, tmp_path: Path) -> None:
    assert load("Before").call() == 3
    (index,) = (tmp_path / "__pycache__").glob("*.nbi")
    kept = index.read_bytes()
    assert load("Afterwards").call() == 3
    assert index.read_bytes() != kept
    assert load("Afterwards").added.stats.cache_path == str(tmp_path / "__pycache__")
    index.write_bytes(kept[:-40])
    assert load("Afterwards").call() == 3


def test_code_is_compiled_if_no_folder_is_writable(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__pycache__", "file"):
        (tmp_path / name).write_text("no folder")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "file" / "below"))
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "file" / "below"))
    assert load("Kept").call() == 3


def test_code_is_compiled_if_its_folder_becomes_unwritable(load: Load, tmp_path: Path) -> None:
    module = load("Kept")
    kept = tmp_path / "__pycache__"
    for path in kept.iterdir():
        path.unlink()
    kept.rmdir()
    kept.write_text("no folder")
    assert module.call() == 3
