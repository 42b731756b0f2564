"""The errors that a user sees as a line and not as a traceback."""

import difflib


class InputError(Exception):
    """Something in the user's input, files or settings is wrong; the text is one line that says what and where."""


class Fault(Exception):
    """A fact about a line, found by code that knows no file; the reader of the file makes it an `InputError`."""


def nearest(name: str, known: list[str]) -> str:
    """Return "; did you mean 'x'?" for the known name that is most like `name`, or the known names."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
