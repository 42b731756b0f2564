"""Files of JSON that others may have written or damaged."""

import json
from pathlib import Path
from typing import Any

from moses_io.errors import InputError
from moses_io.streams import check_plain

MOST_BYTES = 64 * 2**20
"""Size of the largest file that is read."""


def read_json(path: Path) -> Any:
    """Return the value in a file.

    Raises:
        InputError: it is no plain file, too large, or not JSON in UTF-8.
    """
    check_plain(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES // 2**20} MB, expected a small file of JSON")
    return parse_json(content, str(path))


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
