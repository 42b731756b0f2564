"""Checks of the arguments of public Python functions."""

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from moses_io.files.errors import InputError, shown
from moses_io.files.streams import STANDARD, Lines

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
        raise InputError(f"{argument}: no file has a name with a lone surrogate, found {shown(str(path))}") from None
    except ValueError:
        raise InputError(f"{argument}: no file has a name with a NUL in it, found {shown(str(path))}") from None
    # All other code takes `-` for stdin or stdout.
    return f"./{STANDARD}" if str(path) == STANDARD else str(path)


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
        raise InputError(f"{argument}: expected a path or more, found none")
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


def features_of(features: object, argument: str = "features") -> dict[str, str]:
    """Return features as a dict from label to `KIND[:ARG]`.

    Raises:
        InputError: the value is no mapping from text to text. The message names `argument`.
    """
    texts = mapping_of(features, argument, "KIND[:ARG] by label")
    for label, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{argument}: {shown(label)}: expected KIND[:ARG] as text, found {shown(text)}")
    return texts


def mapping_of(values: object, argument: str, what: str) -> dict[str, Any]:
    """Return a mapping as a dict. `what` describes its content in messages.

    Raises:
        InputError: the value is no mapping, or a key is no text. The message names `argument`.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{argument}: expected a mapping, {what}, found {shown(values)}")
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
