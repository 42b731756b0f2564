"""Errors that a user sees as one line instead of a traceback, and helpers for the text of messages."""

import contextlib
import difflib
import re
from collections.abc import Iterator

QUOTED = 80
"""Maximum number of characters of the input that a message quotes."""

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, characters that change the text direction, and surrogates (bytes that are not UTF-8)."""


class InputError(Exception):
    """An error in the user's input, files or settings, with its location.

    The message is always one line. Control characters in it are escaped, for example a line end in a file name.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Fault(Exception):
    """An error in a line, raised by code without access to the file name. The caller converts it to an `InputError`."""


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Convert a `Fault` or `InputError` in the block to an `InputError` with the prefix `place`."""
    try:
        yield
    except (InputError, Fault) as error:
        raise InputError(f"{place}{error}") from None


@contextlib.contextmanager
def opening(path: object) -> Iterator[None]:
    """Convert an `OSError` or `ValueError` in the block to an `InputError` that names the file or folder."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        reason = "a file name cannot contain NUL" if "\0" in str(path) else str(error)
        raise InputError(f"{path}: {reason}") from None


def reason_of(error: InputError | OSError | MemoryError) -> str:
    """Return the message about an error that ended a task."""
    if isinstance(error, OSError):
        return f"{error.filename or 'output'}: {error.strerror}"
    return str(error) if isinstance(error, InputError) else "out of memory"


def nearest(name: str, known: list[str]) -> str:
    """Return a suffix for a message: ". Did you mean 'x'?" with the most similar known name, or all known names."""
    close = difflib.get_close_matches(name, known, n=1)
    return f". Did you mean {shown(close[0])}?" if close else f". Known: {', '.join(known)}"


def counted(count: int, noun: str) -> str:
    """Return the count and the noun in singular or plural, such as `1 value` or `2,000 values`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    r"""Return the text with control and direction characters and surrogates escaped, for example ESC as `\x1b`."""
    return _STEERING.sub(lambda match: ascii(match[0])[1:-1], text)


def shown(found: object) -> str:
    """Return the `repr` of a value for a message, cut after `QUOTED` characters."""
    if isinstance(found, str):
        return f"{found[:QUOTED]!r}{'…' if len(found) > QUOTED else ''}"
    text = repr(found)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
