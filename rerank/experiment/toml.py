"""TOML that people write by hand, and that may be anything else."""

import sys
from collections.abc import Sequence
from typing import Any

from moses_io.errors import InputError, nearest
from moses_io.streams import read_start_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES, LONGEST, MOST_LEVELS = 2**18, 10_000, 16
"""Sizes of the largest file and the longest line that are read, and tables and lists inside each other."""


def read_toml(path: str) -> dict[str, Any]:
    """Return the table in a file.

    Raises:
        InputError: it is no plain file, or as `parse_toml`.
    """
    return parse_toml(read_start_of(path, MOST_BYTES + 1), path)


def parse_toml(content: bytes, path: str) -> dict[str, Any]:
    """Return the table in the content of a file, which messages name.

    Raises:
        InputError: it is too large, not TOML, or has values that no setting has: text with a NUL, whole numbers of more
            than 64 bits, more than `MOST_LEVELS` tables inside each other.
    """
    if len(content) > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES // 2**10} KB, expected a small file of TOML")
    if max(map(len, content.split(b"\n"))) > LONGEST:
        raise InputError(f"{path}: expected lines of at most {LONGEST:,} bytes")
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not TOML, which is in UTF-8") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError:
        raise InputError(f"{path}: a number of too many digits") from None
    _check_values(table, path)
    return table


def as_table(value: Any, place: str) -> dict[str, Any]:
    """Return a value that is a table; an `InputError` names the place of another one."""
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected a table, found {value!r}")
    return value


def path_of(table: dict[str, Any], key: str, prefix: str = "") -> str:
    """Return the path at a key; an `InputError` names the key with the prefix if there is none."""
    path = table.get(key)
    if not isinstance(path, str):
        raise InputError(f"{prefix}{key}: expected a path, found {'nothing' if path is None else repr(path)}")
    return path


def check_keys(table: dict[str, Any], known: Sequence[str], prefix: str = "") -> None:
    """Refuse a key that is not known, with the nearest one that is."""
    for key in table:
        if key not in known:
            raise InputError(f"unknown key {prefix}{key}{nearest(key, list(known))}")


def _check_values(table: dict[str, Any], path: str) -> None:
    """Refuse values that no setting has, a level of the table after the other."""
    level: list[Any] = [table]
    for _ in range(MOST_LEVELS):
        for value in level:
            if isinstance(value, str) and "\0" in value:
                raise InputError(f"{path}: a NUL in {value[:40]!r}")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise InputError(f"{path}: a whole number of more than 64 bits")
        parts = [part for value in level if isinstance(value, dict) for pair in value.items() for part in pair]
        level = parts + [part for value in level if isinstance(value, list) for part in value]
    if level:
        raise InputError(f"{path}: more than {MOST_LEVELS} tables or lists inside each other")
