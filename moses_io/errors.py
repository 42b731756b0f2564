"""The errors that a user sees as a line and not as a traceback."""


class InputError(Exception):
    """Something in the user's input, files or settings is wrong; the text is one line that says what and where."""


class Fault(Exception):
    """A fact about a line, found by code that knows no file; the reader of the file makes it an `InputError`."""
