"""Features of others: those that installed packages bring by name, and classes of modules, `module:Class`."""

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from features.table import FEATURES, Kind
from moses_io.errors import InputError, nearest

ENTRY_POINTS = "moses_rerank.features"
"""Entry points of packages that bring features: name = `module:Class`."""


@functools.cache
def packaged() -> dict[str, Kind]:
    """Return the features that installed packages bring."""
    points = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {point.name: _row(point.value, point.name.title(), point.value) for point in points}


def class_of_module(kind: str, folder: str) -> Kind:
    """Return a row for `module:Class`: of `module.py` in the folder if that is there, else of an installed module.

    A file is loaded by itself and for this name alone; what it imports is what is installed, not what lies beside it.

    Raises:
        InputError: there is no such module, it cannot be imported, or it has no such class.
    """
    name, colon, attribute = kind.partition(":")
    known = nearest(name, list(packaged() | FEATURES))
    if not colon:
        raise InputError(f"unknown feature {kind!r}{known}")
    path = Path(os.path.abspath(folder), *name.split(".")).with_suffix(".py")
    try:
        module = _load(path) if path.is_file() else importlib.import_module(name)
    except SyntaxError as error:
        raise InputError(f"feature {kind!r}: {error.filename}:{error.lineno}: {error.msg}") from None
    except ImportError as error:
        if path.is_file():
            alone = "; a module of features imports what is installed, not the files beside it"
            raise InputError(f"feature {kind!r}: {path}: {error}{alone}") from None
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"unknown feature {kind!r}: no {path}, and no such module is installed{known}") from None
        raise InputError(f"feature {kind!r}: {error}") from None
    if not callable(getattr(module, attribute, None)):
        raise InputError(f"unknown feature {kind!r}: {module.__file__ or name} has no class {attribute!r}{known}")
    return _row(f"{module.__name__}:{attribute}", attribute.replace("_", ""), name)


def _row(target: str, label: str, origin: str) -> Kind:
    return Kind(target, label, f"of {origin}", "ARG", optional=True)


@functools.cache
def _load(path: Path) -> ModuleType:
    """Load a file as a module whose name is that of no other, so that nothing else imports it."""
    name = f"{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
