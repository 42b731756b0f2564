"""Byte streams: plain, gzip, bzip2 or xz by content, `-` for stdin and stdout, files that appear whole or not."""

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, BufferedWriter, FileIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from moses_io.files.compression import LINE, compressing, decompressed, is_compressed
from moses_io.files.errors import InputError, opening, shown

STANDARD = "-"
LONGEST = 10_000_000
"""Bytes of a line, at most: what is compressed in a small file must not fill the memory."""
TEMPORARY = ".temporary"
"""End of the name of a file that is being written."""
LONGEST_NAME = 200
"""Maximum bytes of a file name that is embedded in another file name."""

_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|(?:/dev|/proc/self)/fd/([0-9]+)")
_STANDARD = {"stdout": 1, "stderr": 2}


@dataclass(frozen=True)
class Lines:
    """Lines in the place of a file, with or without their ends; read once, as they come.

    Attributes:
        name: how messages name them.
        texts: one after the other, as text or as the bytes of a file.
    """

    name: str
    texts: Iterable[str | bytes]


def name_of(path: str | Lines) -> str:
    """Return how messages name an input."""
    if isinstance(path, Lines):
        return path.name
    return "<stdin>" if path == STANDARD else path


@contextlib.contextmanager
def open_input(path: str, size: int = LINE) -> Iterator[BinaryIO]:
    """Open a file, or stdin for `-`; gzip, bzip2 and xz are decompressed, whatever the name is.

    Raises:
        InputError: the file cannot be opened, or is a folder; or stdin was closed at the start; while it is read, it
            cannot be read on, is compressed and damaged or cut off, or is far too large for its compressed size, where
            each line counts `size` bytes more than it has.
    """
    name = name_of(path)
    with contextlib.ExitStack() as stack:
        with opening(name):
            if path != STANDARD:
                raw = stack.enter_context(open(path, "rb"))
            elif sys.stdin:
                raw = cast("BufferedReader", sys.stdin.buffer)
            else:
                raise InputError(f"{name}: stdin is closed; name a file")
            stream = stack.enter_context(decompressed(raw, name, size))
        yield stream


def check_plain(path: str | Path) -> None:
    """Refuse what must be read more than once, or to its end, and is no plain file: a folder, a pipe, a device.

    Raises:
        InputError: it is one, or is not there.
    """
    with opening(path):
        mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'a pipe or a device'}, expected a plain file")


def read_start_of(path: str | Path, most: int) -> bytes:
    """Return what a plain file begins with: `most` bytes of it, or all where it has less.

    Raises:
        InputError: it is no plain file, or cannot be read.
    """
    check_plain(path)
    with opening(path), open(path, "rb") as stream:
        return stream.read(most)


def numbered_lines(path: str | Lines, size: int = LINE) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, line with its line end) of a file; a line ends at LF and nowhere else.

    Raises:
        InputError: as `open_input`, or a line is longer than `LONGEST`. One of `Lines` has a line end in its midst.
    """
    if isinstance(path, Lines):
        yield from _numbered(path)
        return
    with open_input(path, size) as stream:
        for number, line in enumerate(iter(partial(stream.readline, LONGEST + 1), b""), start=1):
            if len(line) > LONGEST:
                raise too_long(path, number)
            yield number, line


def is_live(nbest: str | Lines) -> bool:
    """Tell whether a list may still be in the making: it comes from stdin or another pipe."""
    if isinstance(nbest, Lines):
        return False
    if nbest != STANDARD:
        return not os.path.isfile(nbest)
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (AttributeError, OSError):
        return True


def too_long(path: str, number: int) -> InputError:
    """Return what is said of a line that is longer than `LONGEST`."""
    return InputError(f"{name_of(path)}:{number}: expected lines of at most {LONGEST:,} bytes")


def _numbered(lines: Lines) -> Iterator[tuple[int, bytes]]:
    for number, text in enumerate(lines.texts, start=1):
        place = f"{lines.name}:{number}"
        if not isinstance(text, str | bytes):
            raise InputError(f"{place}: expected a line as text or bytes, found {shown(text)}")
        try:
            line = text if isinstance(text, bytes) else text.encode("utf-8", errors="surrogateescape")
        except UnicodeEncodeError:
            raise InputError(f"{place}: a lone surrogate, which no text has: {shown(text)}") from None
        if number == 1 and is_compressed(line):
            raise InputError(f"{place}: expected lines of text, found compressed bytes; give the path instead")
        line = line.removesuffix(b"\n")
        if b"\n" in line:
            raise InputError(f"{place}: expected one line, found {shown(text)}")
        if len(line) > LONGEST:
            raise too_long(lines.name, number)
        yield number, line + b"\n"


class _Target(FileIO):
    """A file whose errors of writing name it, as those of opening do."""

    def __init__(self, file: int | Path, path: str) -> None:
        super().__init__(file, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._path
            raise


def digest(path: Path) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a file's bytes; enough to tell contents apart."""
    return sha256(path)[:12]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal digits.

    Raises:
        InputError: it is no plain file, so that what was read of it is not there again.
    """
    check_plain(path)
    total = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            total.update(block)
    return total.hexdigest()


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing, or stdout for `-`; a name in `.gz`, `.bz2` or `.xz` is compressed.

    The bytes go to a temporary file beside the target, which takes its name only when the block ends well, so that
    no file is left half-written. What is not a plain file (a pipe, `/dev/null`) is written directly, and so is a file
    that is open already (`/dev/stdout`, `/dev/fd/3`), behind what stands there.

    Raises:
        InputError: the file cannot be opened for writing, or stdout was closed at the start.
        OSError: it cannot be written on; the error has its name.
    """
    if path == STANDARD:
        if not sys.stdout:
            raise InputError("<stdout>: stdout is closed; name a file to write")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    with opening(path):
        if path.endswith("/"):
            raise InputError(f"{path}: the name of a folder, expected that of a file")
        direct = _direct(target, path)
        if direct is None:
            target = target.resolve()
            remove_temporaries(target)
            descriptor, temporary = tempfile.mkstemp(TEMPORARY, f"{hidden(target.name)}.", target.parent)
            _lock(descriptor)
    if direct is not None:
        with BufferedWriter(direct) as stream:
            yield stream
        return
    try:
        with BufferedWriter(_Target(descriptor, path)) as raw, compressing(raw, path) as stream:
            yield stream
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def open_between(path: str) -> Iterator[BinaryIO]:
    """Open a file to write and then to read, for what stands between two steps of making `path`; it is gone at the end.

    Raises:
        OSError: it cannot be written on; the error has the name of `path`, beside which it lies.
    """
    try:
        with tempfile.TemporaryFile(dir=Path(path).resolve().parent) as stream:
            yield stream
    except OSError as error:
        error.filename = error.filename or path
        raise


def remove_temporaries(path: Path) -> None:
    """Remove what writings of a file left beside it that were killed, not those under way; see `open_output`."""
    for temporary in path.parent.glob(f"{glob.escape(hidden(path.name))}.{'?' * 8}{TEMPORARY}"):
        if temporary.is_file():
            with contextlib.suppress(OSError), temporary.open("rb") as stream:
                if _lock(stream.fileno()):
                    temporary.unlink()


def hidden(name: str) -> str:
    """Return the prefix of temporary names next to a file: `.NAME`, or a digest if NAME exceeds LONGEST_NAME bytes."""
    # File systems take names of up to 255 bytes, with what follows the prefix.
    data = os.fsencode(name)
    return f".{name}" if len(data) <= LONGEST_NAME else f".{hashlib.sha256(data).hexdigest()[:32]}"


def _lock(descriptor: int) -> bool:
    """Lock an open file as one that is being written; return False if another process does, or without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _direct(target: Path, path: str) -> _Target | None:
    """Open what is written directly; None for what is to be a plain file."""
    if is_open := _DESCRIPTOR.fullmatch(path):
        return _Target(os.dup(_STANDARD.get(is_open[1]) or int(is_open[2])), path)
    return _Target(target, path) if target.exists() and not target.is_file() else None


def _permissions(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
