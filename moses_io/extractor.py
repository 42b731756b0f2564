"""Reader and writer of `features.dat` and `scores.dat`, the files of Moses' extractor, in text form."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, encode, no_number, number, tokens, whole, without_line_end


@dataclass(frozen=True)
class Block:
    """The candidates of one sentence.

    Attributes:
        place: file and line of the first line, for messages.
        sentence: id.
        names: name and index from 0 of each dense feature, such as `LM0_0`. In `scores.dat` the name of the metric.
        rows: dense feature values, or metric statistics, of each candidate.
        sparse: value of each sparse feature by its name, of each candidate.
    """

    place: str
    sentence: int
    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    sparse: tuple[dict[str, float], ...]


def read_blocks(path: str, kind: str) -> Iterator[Block]:
    """Yield the sentences of a file, one after the other.

    Args:
        path: of the file, in text form. Binary files are not supported.
        kind: `FEATURES` or `SCORES`.

    Raises:
        InputError: a line cannot be parsed, or does not match the counts in the header of its sentence.
    """
    lines = ((line_number, tokens(decode(without_line_end(line)))) for line_number, line in numbered_lines(path))
    for line_number, head in lines:
        place = f"{name_of(path)}:{line_number}"
        numbers = [value for value in map(whole, head[1:4]) if value is not None]
        if len(numbers) < 3 or not numbers[1] or head[0] != f"{kind}_TXT_BEGIN_0":
            expected = f"expected '{kind}_TXT_BEGIN_0 ID CANDIDATES VALUES …'"
            binary = ". Run the extractor without -b" if head[:1] == [f"{kind}_BIN_BEGIN_0"] else ""
            raise InputError(f"{place}: {expected}{binary}")
        sentence, count, size = numbers
        if kind == "FEATURES" and len(head) - 4 != size:
            raise InputError(f"{place}: expected {size} names, found {len(head) - 4}")
        rows: list[tuple[float, ...]] = []
        sparse: list[dict[str, float]] = []
        end = [f"{kind}_TXT_END_0"]
        parts: list[str] = []
        for _ in range(count):
            line_number, parts = next(lines, (0, []))  # line_number 0: the file ends inside the sentence
            if not line_number or parts == end:  # fewer candidates than announced
                break
            row, named = _row(parts, f"{name_of(path)}:{line_number}")
            if len(row) != size:
                raise InputError(f"{name_of(path)}:{line_number}: expected {size} dense values, found {len(row)}")
            rows.append(row)
            sparse.append(named)
        if len(rows) < count or next(lines, (0, []))[1] != end:
            raise InputError(f"{place}: expected {counted(count, 'candidate')} and {end[0]}")
        yield Block(place, sentence, tuple(head[4:]), tuple(rows), tuple(sparse))


def write_block(stream: BinaryIO, kind: str, block: Block) -> None:
    """Write a sentence in the format of the extractor, values with six significant digits.

    mert truncates statistics to integers. This has no effect on BLEU, whose statistics are integers.

    Args:
        stream: open file.
        kind: `FEATURES` or `SCORES`.
        block: the sentence, with at least one candidate.
    """
    head = f"{kind}_TXT_BEGIN_0 {block.sentence} {len(block.rows)} {len(block.rows[0])} {' '.join(block.names)}"
    lines = [head + (" " if kind == "FEATURES" else "")]
    for row, named in zip(block.rows, block.sparse, strict=True):
        parts = [*(f"{value:.6g}" for value in row), *(f"{name}={value:.6g}" for name, value in named.items())]
        lines.append(" ".join(parts) + " ")
    stream.write(encode("".join(f"{line}\n" for line in [*lines, f"{kind}_TXT_END_0"])))


def _row(parts: list[str], place: str) -> tuple[tuple[float, ...], dict[str, float]]:
    dense, sparse = [], {}
    for part in parts:
        name, equals, digits = part.rpartition("=")
        value = number(digits)
        if value is None:
            raise InputError(f"{place}: {no_number(digits)}")
        if equals:
            if not name or name in sparse:
                fault = f"feature {shown(name)} occurs twice" if name else "expected a feature name before '='"
                raise InputError(f"{place}: {fault}")
            sparse[name] = value
        else:
            dense.append(value)
    return tuple(dense), sparse
