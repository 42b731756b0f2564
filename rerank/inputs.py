"""Checks of arguments: of public Python functions, and of the paths that a command or function reads and writes."""

import errno
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from moses_io.files.errors import InputError, shown
from moses_io.files.streams import STANDARD, Lines
from rerank.reranker import MANIFEST

_PARTS = re.compile(
    r"config\.json|.*\.(safetensors|vocabulary|bpe)|(features|scores)\.dat|init\.(dense|opt)|sparse-weights"
)
"""File names that belong to a model folder or to a folder of `export`."""

Text = str | Path | Iterable[str | bytes]
"""A path, as `str` or `Path`, or any other iterable of lines."""


def path_of(path: object, argument: str) -> str:
    """Return a path as `str`. A path `-` is the file of this name, not stdin or stdout.

    Raises:
        InputError: the value is no `str` or `Path`, is empty, or cannot be a file name. The message names `argument`.
    """
    if not isinstance(path, str | Path) or not str(path):
        raise InputError(f"{argument}: expected a path, a str or a Path, found {shown(path)}")
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # other errors are reported when the file is opened
            raise InputError(f"{argument}: {error.strerror}: {shown(str(path))}") from None
    except UnicodeEncodeError:
        raise InputError(f"{argument}: a file name cannot contain a lone surrogate, found {shown(str(path))}") from None
    except ValueError:
        raise InputError(f"{argument}: a file name cannot contain NUL, found {shown(str(path))}") from None
    # All other code takes `-` for stdin or stdout.
    return f"./{STANDARD}" if str(path) == STANDARD else str(path)


def plain_value(value: Any) -> Any:
    """Return a number or array of NumPy as a Python value, and any other value unchanged."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def optional_path_of(path: object, argument: str) -> str:
    """Return a path as `path_of` does, or "" for ""."""
    return "" if isinstance(path, str) and not path else path_of(path, argument)


def paths_of(paths: object, argument: str) -> list[str]:
    """Return one path, or several, as a list.

    Raises:
        InputError: no path, or a value that is no path. The message names `argument`.
    """
    if isinstance(paths, str | Path):
        return [path_of(paths, argument)]
    if not _is_iterable(paths):
        raise InputError(f"{argument}: expected a path or a list of paths, found {shown(paths)}")
    listed = [path_of(path, argument) for path in paths]
    if not listed:
        raise InputError(f"{argument}: expected at least one path, found none")
    return listed


def input_of(text: object, name: str, argument: str = "") -> str | Lines:
    """Return a path, or lines with the name that messages use for them.

    Args:
        text: a path or lines.
        name: name of the lines in messages, such as `<nbest>`.
        argument: name of the argument in messages (default: `name` without brackets).

    Raises:
        InputError: the value is neither a path nor an iterable of lines.
    """
    argument = argument or name.strip("<>")
    if isinstance(text, str | Path):
        return path_of(text, argument)
    if not _is_iterable(text):
        raise InputError(f"{argument}: expected a path or lines of text, found {shown(text)}")
    return Lines(name, text)


def features_of(features: object) -> dict[str, str]:
    """Return features as a dict from label to `KIND[:ARG]`.

    Raises:
        InputError: the value is not a dict from str to str.
    """
    texts = mapping_of(features, "features", "KIND[:ARG] by label")
    for label, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"features: {shown(label)}: expected KIND[:ARG] as text, found {shown(text)}")
    return texts


def mapping_of(values: object, argument: str, description: str) -> dict[str, Any]:
    """Return a mapping as a dict. `description` describes its content in messages.

    Raises:
        InputError: the value is not a dict, or a key is not a str. The message names `argument`.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{argument}: expected a mapping, {description}, found {shown(values)}")
    for name in values:
        if not isinstance(name, str):
            raise InputError(f"{argument}: expected names as text, found {shown(name)}")
    return dict(values)


def check_types(expected: type, **arguments: object) -> None:
    """Raise `InputError`, with the name of the argument, if a value is not of the type, `bool` or `str`."""
    for name, value in arguments.items():
        if not isinstance(value, expected):
            wanted = "True or False" if expected is bool else "text"
            raise InputError(f"{name}: expected {wanted}, found {shown(value)}")


def _is_iterable(values: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value is an iterable of values. Strings, bytes and mappings do not count."""
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping):
        return False
    try:
        iter(values)  # type: ignore[call-overload]
    except TypeError:  # also of a numpy array without axes, which is an `Iterable` to Python
        return False
    return True


def check_paths(inputs: Sequence[str], outputs: Mapping[str, str]) -> None:
    """Check input and output paths before a command reads or writes.

    Paths are compared after resolving links.

    Args:
        inputs: paths that are read.
        outputs: paths that are written, by option.

    Raises:
        InputError: a path contains NUL, stdin is named twice, two outputs are one file, or an output is also an input,
            a file that an input refers to, or a file in a folder that is read.
    """
    if any("\0" in path for path in (*inputs, *outputs.values())):
        raise InputError("a file name cannot contain NUL")
    if inputs.count(STANDARD) > 1:
        raise InputError("stdin is named twice, and can be read once. Name a file")
    ordered = sorted(outputs.items(), key=lambda output: output[0] != "--output")  # messages name `--output` first
    for (one, path), (other, same) in itertools.combinations(ordered, 2):
        if os.path.realpath(path) == os.path.realpath(same):
            raise InputError(f"{one} and {other} name the same file or folder")
    for output in filter(os.path.exists, outputs.values()):
        _check_output(output, inputs)


def _check_output(output: str, inputs: Iterable[str]) -> None:
    """Raise `InputError` if an output is an input, or belongs to an input folder."""
    for path in inputs:
        if (os.path.isfile(path) and os.path.samefile(path, output)) or _is_part(output, path):
            raise InputError(f"{output}: the command reads this file and would write over it. Name another output")


def _is_part(output: str, folder: str) -> bool:
    """Return whether a file belongs to a model, a reranker or an export in a folder."""
    real = Path(os.path.realpath(output))
    if not os.path.isdir(folder) or Path(os.path.realpath(folder)) not in real.parents:
        return False
    return _PARTS.fullmatch(real.name) is not None or os.path.isfile(os.path.join(folder, MANIFEST))
