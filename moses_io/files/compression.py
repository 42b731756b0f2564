"""Compressed files: gzip, bzip2 and xz, recognized by the first bytes when they are read, by the name when written."""

import bz2
import contextlib
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from moses_io.files.errors import InputError

LINE, CANDIDATE = 64, 256
"""Bytes that each line counts in addition to its own, in a text and in an n-best list: about what it takes in memory.

Without them a few hundred KB could hold 60 million short lines.
"""

BYTES_LIMIT, LINES_LIMIT = (100, 2**24), (200, 2**26)
"""How many bytes a compressed byte may become, and by how many bytes a part of a file may exceed that.

The first limit is for the bytes alone, the second for bytes and lines. Measured by gzip, bzip2 and xz: lists, texts and
tables of Moses become 3 to 17 times as large; lists of the sample and of Multi30k whose candidates all have the same
features up to 48 times, and up to 111 times with their lines.
"""

BUFFER = 2**16
"""Bytes that are read at a time."""

_FORMATS: dict[re.Pattern[bytes], Callable[..., Any]] = {
    re.compile(rb"\x1f\x8b"): gzip.open,
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): bz2.open,
    re.compile(rb"\xfd7zXZ"): lzma.open,
}
"""First bytes of compressed files, by which they are recognized; of bzip2 so many that no word begins so."""


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is compressed."""
    return any(start.match(head) for start in _FORMATS)


@contextlib.contextmanager
def decompressed(raw: BufferedReader, name: str, line: int) -> Iterator[BinaryIO]:
    """Open what is compressed in a stream, or the stream as it is if it is not compressed.

    Reading raises an `InputError`, with the name, if the disk fails, if the compressed stream is damaged or cut off, or
    if a small file becomes a very large one; for that each line counts `line` bytes more than it has.
    """
    head = raw.peek(10)
    counted = _Counted(raw)
    open_format = next((each for start, each in _FORMATS.items() if start.match(head)), None)
    if open_format is None:
        with BufferedReader(_Reader(raw, None, name, line), BUFFER) as reader:
            yield cast("BinaryIO", reader)
    else:
        with open_format(counted) as stream, BufferedReader(_Reader(stream, counted, name, line), BUFFER) as reader:
            yield cast("BinaryIO", reader)


class _Counted:
    """A stream that knows how much was read of it."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes."""
        block = self._stream.read(size)
        self.count += len(block)
        return block


class _Reader(RawIOBase):
    """A stream whose errors name the file, and the line where a compressed one is damaged or grows too large.

    Each limit is an allowance in bytes: it grows with the compressed bytes that are read, up to a maximum, so that a
    part that was compressed little does not pay for a bomb behind it.
    """

    def __init__(self, stream: BufferedIOBase, compressed: _Counted | None, name: str, line: int) -> None:
        super().__init__()
        self._stream, self._compressed, self._name, self._line = stream, compressed, name, line
        self._allowances = [BYTES_LIMIT[1], LINES_LIMIT[1]]
        self._before = self._count = self._lines = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes next, up to the size of the buffer."""
        try:
            block = self._stream.read1(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise InputError(f"{self._name}: {error.strerror}") from None
            fault = "cut off" if isinstance(error, EOFError) else "damaged"
            raise InputError(f"{self._name}:{self._lines + 1}: the packed stream is {fault} here") from None
        buffer[: len(block)] = block
        if self._compressed:
            self._check(block, self._compressed.count)
        return len(block)

    def _check(self, block: bytes, compressed: int) -> None:
        """Take the size of a block from the allowances, after so many compressed bytes in all."""
        lines = block.count(b"\n")
        self._lines += lines
        self._count += len(block)
        more = compressed - self._before
        self._before = compressed
        limits = zip((BYTES_LIMIT, LINES_LIMIT), self._allowances, (0, self._line * lines), strict=True)
        self._allowances = [
            min(most, left + times * more) - len(block) - extra for (times, most), left, extra in limits
        ]
        if min(self._allowances) < 0:
            found = f"over {self._count:,} bytes in {self._lines:,} lines from {compressed:,} compressed bytes"
            raise InputError(f"{self._name}: {found}; decompress it if that is meant")


def compressing(raw: BinaryIO, path: str) -> contextlib.AbstractContextManager[Any]:
    """Open a stream for writing that compresses if the path ends in `.gz`, `.bz2` or `.xz`."""
    if path.endswith(".gz"):
        return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0)
    if path.endswith(".bz2"):
        return bz2.open(raw, "wb")
    if path.endswith(".xz"):
        return lzma.open(raw, "wb")
    return contextlib.nullcontext(raw)
