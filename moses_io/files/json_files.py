"""Files of JSON that others may have written or damaged."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moses_io.files.errors import InputError, shown
from moses_io.files.streams import read_start_of
from moses_io.files.text import LARGEST, write_text

MOST_BYTES = 4 * 2**20
"""Size of the largest file that is read; of the shortest values, it takes some 30 times as much memory."""

_Record = TypeVar("_Record")
_FAULTS = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RuntimeError)


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Return the value in a file of so many bytes, at most.

    Raises:
        InputError: it is no plain file, too large, or not JSON in UTF-8.
    """
    content = read_start_of(path, most + 1)
    if len(content) > most:
        raise InputError(f"{path}: larger than {most // 2**20} MB, expected a small file of JSON")
    return parse_json(content, str(path))


def read_record(path: Path | str, kind: type[_Record], most: int = MOST_BYTES) -> _Record:
    """Read a record from a file of JSON.

    Args:
        path: of the file.
        kind: a dataclass, whose fields are the keys of an object (other keys are ignored), or another type, such as
            `dict[str, float]`. A named tuple is a list in JSON. A `ValueError` of `__post_init__` is an `InputError`.
        most: bytes of the file.

    Raises:
        InputError: as `read_json` and `record_of`.
    """
    return record_of(read_json(Path(path), most), kind, path)


def record_of(value: Any, kind: type[_Record], name: object) -> _Record:
    """Return a value of JSON as a record, see `read_record`; `name` is how messages name its file.

    Raises:
        InputError: a type differs (an integer may stand for a float, nothing else is converted), a field is missing, or
            a number is not finite or is larger than Moses' largest one.
    """
    with as_written(name):
        _check_numbers(value)
        return msgspec.convert(value, kind)


def _check_numbers(value: Any) -> None:
    """Raise `ValueError` if a number in a value of JSON is not one of Moses."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_numbers(each)
    elif isinstance(value, int | float) and not abs(value) <= LARGEST:  # NaN is not
        raise ValueError(f"expected a number up to {LARGEST:.2g}, found {shown(value)}")


def write_json(path: str, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON in ASCII."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


def parse_json(content: bytes, name: str) -> Any:
    """Return the value of JSON in UTF-8; `name` is how messages name it.

    Raises:
        InputError: it is something else, nested too deeply, or has a number of thousands of digits.
    """
    try:
        return json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}: not JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not JSON (not in UTF-8)") from None
    except RecursionError:
        raise InputError(f"{name}: not JSON that can be read (nested too deeply)") from None
    except ValueError:
        raise InputError(f"{name}: not JSON that can be read (a number of too many digits)") from None


@contextlib.contextmanager
def as_written(name: object) -> Iterator[None]:
    """Make an `InputError` of what goes wrong when a record is made of values that are not as we write them.

    `name` is how messages name the file.
    """
    try:
        yield
    except (*_FAULTS, msgspec.ValidationError) as error:  # which is no ValueError before msgspec 0.21
        fault = f"no {error}" if isinstance(error, KeyError) else str(error).split("\n")[0]
        raise InputError(f"{name}: not as `moses-rerank` wrote it ({fault})") from None
