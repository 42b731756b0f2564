"""Packed input: gzip, bzip2 and xz, told by the first bytes, as long as they do not unpack to what no one packed."""

import bz2
import contextlib
import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from moses_io.errors import InputError

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

_PACKERS: dict[re.Pattern[bytes], Callable[..., Any]] = {
    re.compile(rb"\x1f\x8b"): gzip.open,
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): bz2.open,
    re.compile(rb"\xfd7zXZ"): lzma.open,
}
"""First bytes of packed files, by which they are told; of bzip2 so many that no word begins so."""


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is compressed."""
    return any(start.match(head) for start in _PACKERS)


@contextlib.contextmanager
def unpacked(raw: BufferedReader, name: str, line: int) -> Iterator[BinaryIO]:
    """Give what is packed in a stream, or the stream itself if that is not packed.

    Reading raises an `InputError` with the name if a small file becomes a very large one; each line counts `line`
    bytes more than it has.
    """
    head = raw.peek(10)
    unpack = next((unpack for start, unpack in _PACKERS.items() if start.match(head)), None)
    if unpack is None:
        yield raw
        return
    packed = _Counted(raw)
    with unpack(packed) as stream, BufferedReader(_Unpacked(stream, packed, name, line)) as reader:
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


class _Unpacked(RawIOBase):
    """What a stream unpacks, held against what was read of the packed one."""

    def __init__(self, stream: BufferedIOBase, packed: _Counted, name: str, line: int) -> None:
        super().__init__()
        self._stream, self._packed, self._name, self._line = stream, packed, name, line
        self._limits = [_Limit(*BYTES_LIMIT), _Limit(*LINES_LIMIT)]
        self._count = self._lines = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes next, up to the size of the buffer."""
        block = self._stream.read1(len(buffer))
        buffer[: len(block)] = block
        lines = block.count(b"\n")
        self._count += len(block)
        self._lines += lines
        within = [
            limit.allows(size, self._packed.count)
            for limit, size in zip(self._limits, (len(block), len(block) + self._line * lines), strict=True)
        ]
        if not all(within):
            found = f"over {self._count:,} bytes in {self._lines:,} lines from {self._packed.count:,} compressed bytes"
            raise InputError(f"{self._name}: {found}; decompress it if that is meant")
        return len(block)


class _Limit:
    """Bytes that a compressed file may still become.

    They have an upper limit, so that a part that was compressed little does not pay for a bomb behind it.
    """

    def __init__(self, times: int, most: int) -> None:
        self._times, self._most = times, most
        self._left, self._packed = most, 0

    def allows(self, size: int, packed: int) -> bool:
        """Return whether so many more bytes are allowed, after so many compressed bytes in all."""
        earned = self._times * (packed - self._packed)
        self._left = min(self._most, self._left + earned) - size
        self._packed = packed
        return self._left >= 0
