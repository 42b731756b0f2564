"""The errors that a user sees as a line and not as a traceback, and how lines for people show what was read."""

import contextlib
import difflib
import re
from collections.abc import Iterator

QUOTED = 80
"""Characters of the input that a message repeats, at most."""

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that turn the direction of writing round, and bytes that are no UTF-8."""


class InputError(Exception):
    """Something in the user's input, files or settings is wrong; the text is one line that says what and where.

    It stays one line whatever was read: line ends in the name of a file, for example, are escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Fault(Exception):
    """A fact about a line, found by code that knows no file; the reader of the file makes it an `InputError`."""


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Put the place in front of what is wrong there; a `Fault` becomes an `InputError`."""
    try:
        yield
    except (InputError, Fault) as error:
        raise InputError(f"{place}{error}") from None


@contextlib.contextmanager
def opening(path: object) -> Iterator[None]:
    """Make an `InputError` that names the file or folder of what goes wrong when it is opened."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path}: no file has a name with a NUL in it") from None


def reason_of(error: InputError | OSError | MemoryError) -> str:
    """Return what a user is told of what ended some work."""
    if isinstance(error, OSError):
        return f"{error.filename or 'output'}: {error.strerror}"
    return str(error) if isinstance(error, InputError) else "out of memory"


def nearest(name: str, known: list[str]) -> str:
    """Return "; did you mean 'x'?" for the known name that is most like `name`, or the known names."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {shown(close[0])}?" if close else f"; known: {', '.join(known)}"


def counted(count: int, noun: str) -> str:
    """Return `1 value`, `2 values`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    r"""Return a line for a terminal: what would steer it is escaped, ESC as `\x1b`; all other letters stay."""
    return _STEERING.sub(lambda match: ascii(match[0])[1:-1], text)


def shown(found: object) -> str:
    """Return how a message quotes what was found: its `repr`, cut where it repeats more than `QUOTED` characters."""
    if isinstance(found, str):
        return f"{found[:QUOTED]!r}{'…' if len(found) > QUOTED else ''}"
    text = repr(found)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
