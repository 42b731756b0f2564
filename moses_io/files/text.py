"""Plain text with one sentence per line, split as in Moses: lines end at LF, tokens are separated by ASCII spaces.

In text that Moses reads (source and training text), a tab separates words as well, see `input_lines`.
`CreateFromString` in moses/Phrase.cpp and `tokenize` in util/tokenize.hh split at both. Moses' extractor splits n-best
lists and references at spaces only.

Python's `split()` and `splitlines()` also split at U+0085, U+2028, no-break space and others, which Moses does not.
Bytes that are not UTF-8 are preserved by reading and writing.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import Lines, name_of, numbered_lines, open_output

MAX_VALUE = 3.4028235e38
"""Largest absolute value in Moses, which computes in float32. Sums of products of such values fit into float64."""

LIMIT = f"{MAX_VALUE:.2g}, the limit of float32 in Moses"
"""`MAX_VALUE` in messages."""

ESCAPES = {
    "&lt;": "<",
    "&gt;": ">",
    "&apos;": "'",
    "&quot;": '"',
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
    "&bar;": "|",
    "&bra;": "[",
    "&ket;": "]",
    "&amp;": "&",
}
"""Character of each escape of Moses' tokenizer, also of old versions, in the order of unescaping.

`&amp;` must be the last one.
"""

NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MARK = re.compile(r"(^| )\|[0-9]+-[0-9]+(,[^|]*)?\|(?=$| )")
"""Segmentation mark and the space before it, from Moses' options -t and -tt."""

_XML_INPUT = re.compile(
    r"""
    <[A-Za-z][^ <>]*\ (?:[^<>]*\ )?(?:translation|english)="[^<>]*>  # a translation for words of the source
    | <ne\ (?:[^<>]*\ )?entity="[^<>]*>  # a placeholder
    | <tree\ (?:[^<>]*\ )?label="[^<>]*>  # a constituent, for syntax models
    | <wall\ ?/> | </(?:wall|zone)>  # reordering constraints
    """,
    re.VERBOSE,
)
"""Tags that Moses interprets (moses/XmlOption.cpp, moses/TreeInput.cpp). Other tags, such as `<unk>`, are text."""
_DOCUMENT = re.compile(
    r"[ \t]*<(\?xml|!doctype|mteval[ >]|(srcset|refset|tstset|dataset|doc|seg|tmx|xliff) [^<>]*=)", re.IGNORECASE
)
"""Start of a test set in SGML or XML."""


def decode(line: bytes) -> str:
    """Decode a line. Bytes that are not UTF-8 become surrogates, which `encode` converts back."""
    return line.decode("utf-8", errors="surrogateescape")


def encode(text: str) -> bytes:
    """Encode text from `decode` to the original bytes."""
    return text.encode("utf-8", errors="surrogateescape")


def without_line_end(line: bytes) -> bytes:
    """Return the line without LF or CR LF at its end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def unescaped(text: str) -> str:
    """Return the text with the escapes of Moses' tokenizer replaced by the characters."""
    if "&" in text:
        for escape, character in ESCAPES.items():
            text = text.replace(escape, character)
    return text


def tokens(text: str) -> list[str]:
    """Return the tokens of a sentence: maximal runs without an ASCII space."""
    return [token for token in text.split(" ") if token]


def words(text: str) -> list[str]:
    """Return the words of text that Moses reads: maximal runs without an ASCII space or a tab."""
    return tokens(without_tabs(text))


def number(token: str) -> float | None:
    """Return the value of a number in C locale syntax, or None if the token is no number or exceeds `MAX_VALUE`."""
    if not NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if -MAX_VALUE <= value <= MAX_VALUE else None


def no_number(token: str, expected: str = "a number") -> str:
    """Return the message about a token for which `number` returns None."""
    if token.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return f"not finite ({token})"
    if NUMBER.fullmatch(token):
        return f"the absolute value of {shown(token)} exceeds {LIMIT}"
    return f"expected {expected}, found {shown(token)}"


def numbers(what: str, name: str, texts: Sequence[str]) -> tuple[float, ...]:
    """Return the values of several tokens, each parsed as in `number`.

    Args:
        what: start of a message, such as "weights of".
        name: of the feature, after `what` in a message.
        texts: the tokens.

    Raises:
        Fault: a token is not a number, or exceeds `MAX_VALUE`.
    """
    values = []
    for token in texts:
        value = number(token)
        if value is None:
            raise Fault(f"{what} {shown(name)}: {no_number(token)}")
        values.append(value)
    return tuple(values)


def whole(token: str) -> int | None:
    """Return the value of a token of 1 to 18 ASCII digits, or None. Python's `int` also accepts signs, `_` etc."""
    return int(token) if len(token) <= 18 and token.isascii() and token.isdigit() else None


def has_marks(text: str) -> bool:
    """Return whether a text has segmentation marks such as `|0-1|`, see `MARK`."""
    return bool(MARK.search(text))


def read_lines(path: str | Lines) -> list[str]:
    """Return the lines of a file without line ends, and without a byte order mark at the start.

    Raises:
        InputError: the file is SGML or XML, or an error of `numbered_lines`.
    """
    return list(stream_lines(path))


def parallel_lines(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of lines of two files, with a space for each tab, while the files are read.

    At most one of the files can be stdin.

    Raises:
        InputError: the files differ in length (raised at the end of the shorter file), or are empty.
    """
    sides, count = (input_lines(source), input_lines(target)), 0
    for one, other in zip_longest(*sides):
        if one is None or other is None:
            longer = count + 1 + sum(1 for _ in zip_longest(*sides))
            sizes = (count, longer) if one is None else (longer, count)
            raise _other_length(target, sizes[1], source, sizes[0])
        count += 1
        yield one, other
    if not count:
        raise empty_file(source)


@dataclass(frozen=True)
class ParallelFiles:
    """Paths of a text and its translation, one sentence a line, and optionally of the links of each pair."""

    source: str
    target: str
    alignment: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files, without the alignment if it is empty."""
        return (self.source, self.target, *([self.alignment] if self.alignment else []))


def read_parallel(source: str, target: str) -> list[tuple[str, str]]:
    """Return the pairs of lines of two files, with a space for each tab.

    Raises:
        InputError: the files differ in length, or are empty.
    """
    return list(parallel_lines(source, target))


def read_references(paths: Sequence[str | Lines]) -> list[list[str]]:
    """Return the lines of each of several parallel files, such as references.

    Raises:
        InputError: the files differ in length.
    """
    references = [read_lines(path) for path in paths]
    _check_lengths(paths, references)
    return references


def read_texts(source: str | Lines, others: Sequence[str | Lines]) -> tuple[list[str], list[list[str]]]:
    """Return the source sentences of a file, and the lines of each of several files parallel to it.

    Raises:
        InputError: the files differ in length, or an error of `read_sources`.
    """
    sources, texts = read_sources(source), [read_lines(path) for path in others]
    _check_lengths([source, *others], [sources, *texts])
    return sources, texts


def _check_lengths(paths: Sequence[str | Lines], texts: Sequence[Sequence[str]]) -> None:
    """Raise `InputError` if the number of lines of a text differs from the first text."""
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise _other_length(path, len(lines), paths[0], len(texts[0]))


def _other_length(path: str | Lines, lines: int, first: str | Lines, first_lines: int) -> InputError:
    return InputError(f"{name_of(path)} has {counted(lines, 'line')}, {name_of(first)} has {first_lines:,}")


def missing_as_none(references: Sequence[str]) -> list[str | None]:
    """Return the references of a sentence, with None for each missing reference.

    A blank line in one of several reference files means that this file has no translation of the sentence. If all
    lines are blank, the correct translation is empty, and no reference is missing.
    """
    missing = [not line or line.isspace() for line in references]
    return [None if blank and not all(missing) else line for line, blank in zip(references, missing, strict=True)]


def without_missing(references: Sequence[str]) -> list[str]:
    """Return the references of a sentence that are not missing, see `missing_as_none`. At least one remains."""
    return [line for line in missing_as_none(references) if line is not None]


def write_text(path: str, text: str) -> None:
    """Write a text to a file. Surrogates from `decode` become the original bytes."""
    with open_output(path) as stream:
        stream.write(encode(text))


def stream_lines(path: str | Lines) -> Iterator[str]:
    """Yield the same lines as `read_lines`, one at a time, without reading the whole file first."""
    for number, line in numbered_lines(path):
        yield first_line(line, path) if number == 1 else decode(without_line_end(line))


def first_line(line: bytes, path: str | Lines) -> str:
    """Return the first line of a text without its line end and byte order mark.

    Raises:
        InputError: the file is SGML or XML.
    """
    text = decode(without_line_end(line.removeprefix(codecs.BOM_UTF8)))
    if is_document(text):
        raise InputError(
            f"{name_of(path)}:1: SGML or XML, expected plain text, one sentence per line. Extract it from SGML with "
            "Moses' scripts/ems/support/input-from-sgm.perl or reference-from-sgm.perl, from a WMT test set with "
            "`sacrebleu -t SET -l PAIR --echo src` or `--echo ref`"
        )
    return text


def is_document(first: str) -> bool:
    """Return whether a file with this first line is SGML or XML, such as a test set of WMT, instead of plain text."""
    return bool(_DOCUMENT.match(first))


def input_lines(path: str | Lines) -> Iterator[str]:
    """Yield the lines of a source or training text, with a space for each tab, as in Moses."""
    return map(without_tabs, stream_lines(path))


def without_tabs(line: str) -> str:
    """Return a line with a space for each tab, so that `tokens` splits it as Moses does."""
    return line.replace("\t", " ")


def read_sources(path: str | Lines) -> list[str]:
    """Return the source sentences of a file, with a space for each tab.

    Raises:
        InputError: a sentence has markup that Moses' option -xml-input interprets, or an error of `read_lines`.
    """
    lines = list(input_lines(path))
    check_markup(path, lines)
    return lines


def check_markup(path: str | Lines, lines: Iterable[str], start: int = 1) -> None:
    """Raise `InputError` if source sentences have markup that Moses' option -xml-input interprets.

    Args:
        path: for the message.
        lines: source sentences.
        start: line number of the first one.
    """
    for number, line in enumerate(lines, start):
        if "<" in line and (tag := _XML_INPUT.search(line)):
            raise InputError(
                f"{name_of(path)}:{number}: {shown(tag[0])} is markup for Moses' -xml-input, expected the words only. "
                "Remove it with Moses' scripts/generic/strip-xml.perl"
            )


def empty_file(path: str | Lines) -> InputError:
    """Return the error about a text without lines."""
    return InputError(f"{name_of(path)}: the file is empty. Expected one sentence per line")
