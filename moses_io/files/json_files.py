"""JSON files that may be damaged or written by other programs."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moses_io.files.errors import InputError, shown
from moses_io.files.streams import read_start_of
from moses_io.files.text import MAX_VALUE, write_text

MAX_BYTES = 4 * 2**20
"""Default maximum size of a file in bytes. A file of very short values takes about 30 times its size in memory."""

_Record = TypeVar("_Record")
_FAULTS = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RuntimeError)


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Read the value in a JSON file of at most `max_bytes` bytes.

    Raises:
        InputError: the path is not a plain file, or the file is too large or not JSON in UTF-8.
    """
    content = read_start_of(path, max_bytes + 1)
    if len(content) > max_bytes:
        raise InputError(f"{path}: larger than {max_bytes // 2**20} MB, expected a small JSON file")
    return parse_json(content, str(path))


def read_record(path: Path | str, kind: type[_Record], max_bytes: int = MAX_BYTES) -> _Record:
    """Read a record from a file of JSON.

    Args:
        path: of the file.
        kind: a dataclass, whose fields are the keys of a JSON object (other keys are ignored), or another type, such as
            `dict[str, float]`. A named tuple is a list in JSON.
        max_bytes: maximum size of the file.

    Raises:
        InputError: an error of `read_json` or `record_of`.
    """
    return record_of(read_json(Path(path), max_bytes), kind, path)


def record_of(value: Any, kind: type[_Record], name: object) -> _Record:
    """Convert a JSON value to a record.

    Args:
        value: parsed JSON.
        kind: as in `read_record`.
        name: of the file, for messages.

    Raises:
        InputError: a value has the wrong type (only an integer is converted, to a float), a field is missing, a number
            is not finite or larger than `MAX_VALUE`, or `__post_init__` raises `ValueError`.
    """
    with as_written(name):
        _check_numbers(value)
        return msgspec.convert(value, kind)


def _check_numbers(value: Any) -> None:
    """Raise `ValueError` if a number in a JSON value is not finite or larger than `MAX_VALUE`."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_numbers(each)
    elif isinstance(value, int | float) and not abs(value) <= MAX_VALUE:  # also true for NaN
        raise ValueError(f"expected a number up to {MAX_VALUE:.2g}, found {shown(value)}")


def write_json(path: str, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON in ASCII."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


def write_json_lines(path: str, values: Iterable[Any]) -> None:
    """Write values as lines of JSON in ASCII."""
    write_text(path, "".join(json.dumps(value) + "\n" for value in values))


def parse_json(content: bytes, name: str) -> Any:
    """Parse JSON in UTF-8. `name` is the name of the file, for messages.

    Raises:
        InputError: the content is not JSON in UTF-8, is nested too deeply, or has a number of thousands of digits.
    """
    try:
        return json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}: not JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not JSON (not in UTF-8)") from None
    except RecursionError:
        raise InputError(f"{name}: not readable JSON (nested too deeply)") from None
    except ValueError:
        raise InputError(f"{name}: not readable JSON (a number of too many digits)") from None


@contextlib.contextmanager
def as_written(name: object) -> Iterator[None]:
    """Convert errors about malformed values in the block, such as a missing key, to an `InputError`.

    For code that builds a record from a file which this project wrote. `name` is the name of the file, for messages.
    """
    try:
        yield
    except (*_FAULTS, msgspec.ValidationError) as error:  # not a subclass of ValueError before msgspec 0.21
        fault = f"no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise InputError(f"{name}: damaged or edited, `moses-rerank` cannot read it ({fault})") from None
