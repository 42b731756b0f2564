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

MOST_BYTES, MOST_TIMES = 2**26, 200
"""Unpacked bytes above which a file must not be so many times as large as it is packed; of text that is 3 to 50."""

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
def unpacked(raw: BufferedReader, name: str) -> Iterator[BinaryIO]:
    """Give what is packed in a stream, or the stream itself if that is not packed.

    Reading raises an `InputError` with the name where a small file unpacks to a very large one.
    """
    head = raw.peek(10)
    unpack = next((unpack for start, unpack in _PACKERS.items() if start.match(head)), None)
    if unpack is None:
        yield raw
        return
    packed = _Counted(raw)
    with unpack(packed) as stream, BufferedReader(_Unpacked(stream, packed, name)) as reader:
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

    def __init__(self, stream: BufferedIOBase, packed: _Counted, name: str) -> None:
        super().__init__()
        self._stream, self._packed, self._name = stream, packed, name
        self._count = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes next, up to the size of the buffer."""
        block = self._stream.read1(len(buffer))
        buffer[: len(block)] = block
        self._count += len(block)
        if self._count > max(MOST_BYTES, MOST_TIMES * self._packed.count):
            packed = f"more than {MOST_TIMES} times as large as it is packed, and larger than {MOST_BYTES // 2**20} MB"
            raise InputError(f"{self._name}: {packed}; unpack it if that is meant")
        return len(block)
