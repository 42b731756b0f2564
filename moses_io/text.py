"""Plain text, one sentence a line, as Moses sees it: lines end at LF, tokens are separated by ASCII spaces.

Python's own `split()` and `splitlines()` also break at U+0085, U+2028, no-break space and others, which Moses passes
through. Bytes that are no UTF-8 survive reading and writing.
"""

import codecs
import re
from collections.abc import Sequence

from moses_io.errors import InputError
from moses_io.streams import numbered_lines

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MARK = re.compile(r"(^| )\|[0-9]+-[0-9]+[|,]")


def decode(line: bytes) -> str:
    """Return the text of a line; bytes that are no UTF-8 become surrogates, which `encode` turns back."""
    return line.decode("utf-8", errors="surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes that `decode` read."""
    return text.encode("utf-8", errors="surrogateescape")


def without_line_end(line: bytes) -> bytes:
    """Cut LF or CR LF from the end of a line."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def tokens(text: str) -> list[str]:
    """Return the tokens of a sentence: maximal runs without an ASCII space."""
    return [token for token in text.split(" ") if token]


def number(token: str) -> float | None:
    """Return the value of a number in the C locale's style, None for anything else; Python's `float` takes more."""
    return float(token) if _NUMBER.fullmatch(token) else None


def has_marks(text: str) -> bool:
    """Tell whether Moses put segmentation marks such as `|0-1|` into a text (its options -t and -tt)."""
    return bool(_MARK.search(text))


def read_lines(path: str) -> list[str]:
    """Return the lines of a file without their ends, and without the byte order mark that some editors put in front."""
    return [
        decode(without_line_end(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line))
        for number, line in numbered_lines(path)
    ]


def read_parallel(source: str, target: str) -> list[tuple[str, str]]:
    """Return the pairs of lines of two files.

    Raises:
        InputError: the files differ in length, or are empty.
    """
    sources, targets = read_references([source, target])
    if not sources:
        raise InputError(f"{source} is empty")
    return list(zip(sources, targets, strict=True))


def read_references(paths: Sequence[str]) -> list[list[str]]:
    """Return the lines of each of several files that go together, such as references.

    Raises:
        InputError: the files differ in length.
    """
    references = [read_lines(path) for path in paths]
    for path, lines in zip(paths, references, strict=True):
        if len(lines) != len(references[0]):
            raise InputError(f"{path} has {len(lines)} lines, {paths[0]} has {len(references[0])}")
    return references
