"""Byte streams: plain, gzip, bzip2 or xz by content, `-` for stdin and stdout, files that appear whole or not."""

import bz2
import contextlib
import glob
import gzip
import hashlib
import lzma
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from moses_io.errors import InputError

STANDARD = "-"
_PACKERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
"""First bytes of packed files."""


def name_of(path: str) -> str:
    """Return how messages name an input."""
    return "<stdin>" if path == STANDARD else path


@contextlib.contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file, or stdin for `-`, and unpack gzip, bzip2 and xz, told by the first bytes and not by the name.

    Raises:
        InputError: the file cannot be opened, or is a folder.
    """
    with contextlib.ExitStack() as stack:
        if path == STANDARD:
            raw = cast("BufferedReader", sys.stdin.buffer)
        else:
            try:
                raw = stack.enter_context(Path(path).open("rb"))
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from None
        head = raw.peek(5)
        unpack = next((unpack for start, unpack in _PACKERS.items() if head.startswith(start)), None)
        yield stack.enter_context(unpack(raw)) if unpack else raw


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, line with its line end) of a file; a line ends at LF and nowhere else.

    Raises:
        InputError: the file cannot be opened, or what is packed in it is damaged or cut off; the line is named.
    """
    number = 0
    with open_input(path) as stream:
        try:
            for number, line in enumerate(stream, start=1):
                yield number, line
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise InputError(f"{name_of(path)}: {error.strerror}") from None
            fault = "cut off" if isinstance(error, EOFError) else "damaged"
            raise InputError(f"{name_of(path)}:{number + 1}: the packed stream is {fault} here") from None


def check_plain(path: Path) -> None:
    """Refuse, with an `InputError`, what is not there or is no plain file: a folder, or a pipe without a writer."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'not a plain file'}, expected a file")


def digest(path: Path) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a file's bytes; enough to tell contents apart."""
    return sha256(path)[:12]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal digits."""
    total = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            total.update(block)
    return total.hexdigest()


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing, or stdout for `-`; a name in `.gz`, `.bz2` or `.xz` is packed.

    The bytes go to a temporary file beside the target, which takes its name only when the block ends well, so that
    no half file is ever left. What is not a plain file (a pipe, `/dev/null`) is written directly.

    Raises:
        InputError: the file cannot be written.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        direct = target.open("wb") if target.exists() and not target.is_file() else None
        if direct is None:
            target = target.resolve()
            descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if direct is not None:
        with direct:
            yield direct
        return
    try:
        with os.fdopen(descriptor, "wb") as raw, _packed(raw, path) as stream:
            yield stream
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_halves(path: Path) -> None:
    """Remove what writings of a file left beside it that were killed; see `open_output`."""
    for half in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}"):
        half.unlink(missing_ok=True)


def _packed(raw: BinaryIO, path: str) -> contextlib.AbstractContextManager[Any]:
    if path.endswith(".gz"):
        return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0)
    if path.endswith(".bz2"):
        return bz2.open(raw, "wb")
    if path.endswith(".xz"):
        return lzma.open(raw, "wb")
    return contextlib.nullcontext(raw)


def _permissions(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
