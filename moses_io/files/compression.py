"""Files compressed with gzip, bzip2 or xz.

The format is detected by the first bytes when a file is read, and by the file name when it is written.
"""

import bz2
import contextlib
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

from moses_io.files.errors import InputError, counted

TEXT_OVERHEAD, LIST_OVERHEAD = 64, 256
"""Approximate memory overhead in bytes of each line of a text, and of an n-best list.

The overhead counts in `LINES_LIMIT`. Without it, a compressed file of a few hundred KB could have 60 million short
lines.
"""

BYTES_LIMIT, LINES_LIMIT = (100, 2**24), (200, 2**26)
"""Limits on decompressed data: (bytes per compressed byte, bytes by which a part of a file may exceed this ratio).

`BYTES_LIMIT` applies to the bytes alone, `LINES_LIMIT` to the bytes plus the overhead of the lines. Ratios measured
with gzip, bzip2 and xz:

* 3 to 17 for n-best lists, texts and tables of Moses.
* Up to 48, or 111 with the overhead of the lines, for lists of the sample and of Multi30k in which all candidates have
  equal feature values.
"""

BUFFER = 2**16
"""Buffer size in bytes."""

_FORMATS: dict[re.Pattern[bytes], Callable[..., Any]] = {
    re.compile(rb"\x1f\x8b"): gzip.open,
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): bz2.open,
    re.compile(rb"\xfd7zXZ"): lzma.open,
}
"""Signature of each format, at the start of a file.

For bzip2 it includes the magic number of the first block or of the end of the stream, because a text can start with
`BZh1`.
"""


_UNSUPPORTED = {
    "zstd": (b"\x28\xb5\x2f\xfd", (".zst", ".zstd")),
    "lz4": (b"\x04\x22\x4d\x18", (".lz4",)),
    "zip": (b"PK\x03\x04", (".zip",)),
    "7z": (b"7z\xbc\xaf\x27\x1c", (".7z",)),
    "compress": (b"\x1f\x9d", (".Z",)),
}
"""Signature and file name extensions of formats that are reported, since they would be read or written as text."""


_SUPPORTED = "Expected gzip (.gz), bzip2 (.bz2), xz (.xz) or no compression"


def is_compressed(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is compressed."""
    return any(start.match(head) for start in _FORMATS)


@contextlib.contextmanager
def decompressed(raw: BufferedReader, name: str, overhead: int) -> Iterator[BinaryIO]:
    """Yield the decompressed content of a stream, or the stream itself if it is not compressed.

    Args:
        raw: binary stream.
        name: of the file, for messages.
        overhead: memory overhead of a line in bytes, `TEXT_OVERHEAD` or `LIST_OVERHEAD`.

    Raises:
        InputError: the format of the compression is not supported. During reading: the disk fails, the compressed
            stream is damaged or cut off, or the content is too large for its compressed size.
    """
    head = raw.peek(10)  # the bzip2 signature has 10 bytes
    for format_name, (signature, _) in _UNSUPPORTED.items():
        if head.startswith(signature):
            raise InputError(f"{name}: compressed as {format_name}. {_SUPPORTED}")
    compressed = _Counted(raw)
    open_format = next((each for start, each in _FORMATS.items() if start.match(head)), None)
    if open_format is None:
        with BufferedReader(_Reader(raw, None, name, overhead), BUFFER) as reader:
            yield cast("BinaryIO", reader)
    else:
        with (
            open_format(compressed) as stream,
            BufferedReader(_Reader(stream, compressed, name, overhead), BUFFER) as reader,
        ):
            yield cast("BinaryIO", reader)


class _Counted:
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        block = self._stream.read(size)
        self.count += len(block)
        return block


class _Reader(RawIOBase):
    """A stream whose errors name the file, and the line at which a compressed stream is damaged.

    Each limit is a token bucket. Each compressed byte adds to the allowance, up to a maximum, and each decompressed
    byte is subtracted from it. Because of the maximum, a long part with a low compression ratio cannot offset a
    decompression bomb after it.
    """

    def __init__(self, stream: BufferedIOBase, compressed: _Counted | None, name: str, overhead: int) -> None:
        super().__init__()
        self._stream, self._compressed, self._name, self._overhead = stream, compressed, name, overhead
        self._allowances = [BYTES_LIMIT[1], LINES_LIMIT[1]]
        self._before = self._count = self._lines = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into the buffer, and return their number."""
        try:
            block = self._stream.read1(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # An error of the disk has a number. A damaged gzip or bzip2 stream raises `OSError` without a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise InputError(f"{self._name}: {error.strerror}") from None
            fault = "cut off" if isinstance(error, EOFError) else "damaged"
            raise InputError(f"{self._name}:{self._lines + 1}: the compressed stream is {fault}") from None
        buffer[: len(block)] = block
        if self._compressed:
            self._check(block, self._compressed.count)
        return len(block)

    def _check(self, block: bytes, compressed: int) -> None:
        """Subtract a block from the allowances, after `compressed` bytes were read from the file in total."""
        lines = block.count(b"\n")
        self._lines += lines
        self._count += len(block)
        more = compressed - self._before
        self._before = compressed
        limits = zip((BYTES_LIMIT, LINES_LIMIT), self._allowances, (0, self._overhead * lines), strict=True)
        self._allowances = [
            min(most, left + times * more) - len(block) - extra for (times, most), left, extra in limits
        ]
        if min(self._allowances) < 0:
            size = f"{compressed:,} compressed bytes expand to more than {self._count:,} bytes"
            fault = f"suspicious compression ratio: {size} ({counted(self._lines, 'line')})"
            raise InputError(f"{self._name}: {fault}. If the file is correct, decompress it first")


def check_extension(path: str) -> None:
    """Raise `InputError` if the extension of a file to write names a format of compression that is not supported."""
    for format_name, (_, extensions) in _UNSUPPORTED.items():
        if path.endswith(extensions):
            raise InputError(f"{path}: {format_name} is not supported. {_SUPPORTED}")


def compressing(raw: BinaryIO, path: str) -> contextlib.AbstractContextManager[Any]:
    """Return a stream for writing to `raw`, compressed if the path ends in `.gz`, `.bz2` or `.xz`."""
    if path.endswith(".gz"):
        # Without name and time in the header, equal content gives equal bytes.
        return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0)
    if path.endswith(".bz2"):
        return bz2.open(raw, "wb")
    if path.endswith(".xz"):
        return lzma.open(raw, "wb")
    return contextlib.nullcontext(raw)
