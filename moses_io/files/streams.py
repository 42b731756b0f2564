"""Byte streams: input decompressed by content, `-` for stdin and stdout, and atomic writing of files."""

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

from moses_io.files.compression import TEXT_OVERHEAD, check_extension, compressing, decompressed, is_compressed
from moses_io.files.errors import InputError, opening, shown

STANDARD = "-"
MAX_LINE_BYTES = 10_000_000
"""Maximum bytes of a line, so that a small compressed file cannot fill the memory."""
TEMPORARY = ".temporary"
"""Suffix of the name of a temporary file while it is written."""
MAX_NAME_BYTES = 200
"""Maximum bytes of a file name that is part of the name of a temporary file."""

_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|(?:/dev|/proc/self)/fd/([0-9]+)")
_STANDARD = {"stdout": 1, "stderr": 2}


@dataclass(frozen=True)
class Lines:
    """Lines that a function reads instead of a file. They are iterated once.

    Attributes:
        name: name of the lines in messages.
        texts: lines as `str` or `bytes`, with or without line ends.
    """

    name: str
    texts: Iterable[str | bytes]


def name_of(path: str | Lines) -> str:
    """Return the name of an input for messages."""
    if isinstance(path, Lines):
        return path.name
    return "<stdin>" if path == STANDARD else path


@contextlib.contextmanager
def open_input(path: str, overhead: int = TEXT_OVERHEAD) -> Iterator[BinaryIO]:
    """Open a file, or stdin for `-`. gzip, bzip2 and xz are detected by content and decompressed.

    Args:
        path: of the file.
        overhead: memory overhead of a line in bytes, `TEXT_OVERHEAD` or `LIST_OVERHEAD`.

    Raises:
        InputError: the path cannot be opened or is a folder, or stdin is closed. During reading, the file cannot be
            read, the compressed stream is damaged or cut off, or the content is too large for its compressed size.
    """
    name = name_of(path)
    with contextlib.ExitStack() as stack:
        with opening(name):  # ends before the yield, because errors of the block are not errors of opening
            if path != STANDARD:
                raw = stack.enter_context(open(path, "rb"))
            elif sys.stdin:
                raw = cast("BufferedReader", sys.stdin.buffer)
            else:
                raise InputError(f"{name}: stdin is closed. Name a file")
            stream = stack.enter_context(decompressed(raw, name, overhead))
        yield stream


def check_plain(path: str | Path) -> None:
    """Raise `InputError` if the path is not a plain file, for example a folder, a pipe or a device, or is missing.

    For files that are read more than once, or completely into memory.
    """
    with opening(path):
        mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'a pipe or a device'}, expected a plain file")


def read_start_of(path: str | Path, most: int) -> bytes:
    """Return the first `most` bytes of a plain file, or the whole file if it is shorter.

    Raises:
        InputError: the path is not a plain file, or cannot be read.
    """
    check_plain(path)
    with opening(path), open(path, "rb") as stream:
        return stream.read(most)


def numbered_lines(path: str | Lines, overhead: int = TEXT_OVERHEAD) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line with its line end) of a file. A line ends only at LF.

    Args:
        path: of the file, `-` for stdin, or lines.
        overhead: memory overhead of a line in bytes, `TEXT_OVERHEAD` or `LIST_OVERHEAD`.

    Raises:
        InputError: a line has more than `MAX_LINE_BYTES` bytes, an error of `open_input`, or an item of `Lines` is not
            one line of text.
    """
    if isinstance(path, Lines):
        yield from _numbered(path)
        return
    with open_input(path, overhead) as stream:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), start=1):
            if len(line) > MAX_LINE_BYTES:
                raise too_long(path, number)
            yield number, line


def is_live(nbest: str | Lines) -> bool:
    """Return whether a list may still be growing, because it comes from a pipe or another path that is no file."""
    if isinstance(nbest, Lines):
        return False
    if nbest != STANDARD:
        return not os.path.isfile(nbest)
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (AttributeError, OSError):
        return True


def too_long(path: str, number: int) -> InputError:
    """Return the error about a line of more than `MAX_LINE_BYTES` bytes."""
    return InputError(f"{name_of(path)}:{number}: expected lines of at most {MAX_LINE_BYTES:,} bytes")


def _numbered(lines: Lines) -> Iterator[tuple[int, bytes]]:
    for number, text in enumerate(lines.texts, start=1):
        place = f"{lines.name}:{number}"
        if not isinstance(text, str | bytes):
            raise InputError(f"{place}: expected a line as text or bytes, found {shown(text)}")
        try:
            line = text if isinstance(text, bytes) else text.encode("utf-8", errors="surrogateescape")
        except UnicodeEncodeError:
            raise InputError(f"{place}: a lone surrogate, which is not valid text: {shown(text)}") from None
        if number == 1 and is_compressed(line):
            raise InputError(f"{place}: expected lines of text, found compressed bytes. Give the path instead")
        line = line.removesuffix(b"\n")
        if b"\n" in line:
            raise InputError(f"{place}: expected one line, found {shown(text)}")
        if len(line) > MAX_LINE_BYTES:
            raise too_long(lines.name, number)
        yield number, line + b"\n"


class _Target(FileIO):
    """A file whose write errors have its file name, like the errors of `open`."""

    def __init__(self, file: int | Path, path: str) -> None:
        super().__init__(file, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._path
            raise


def version_of(path: str) -> tuple[int, int]:
    """Return the time of the last change and the size of a file, to detect whether the file has changed."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def digest(path: Path) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a file, enough to distinguish contents."""
    return sha256(path)[:12]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    Raises:
        InputError: the path is not a plain file. The content of a pipe would be lost for later readers.
    """
    check_plain(path)
    total = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            total.update(block)
    return total.hexdigest()


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing, or stdout for `-`.

    A plain file is written atomically, and compressed if the name ends in `.gz`, `.bz2` or `.xz`. The bytes go to a
    temporary file in the folder of the target, which is renamed to the target only if the block ends without an error.

    A path that exists and is not a plain file, such as a pipe or `/dev/null`, is written directly and without
    compression. An open file, such as `/dev/stdout` or `/dev/fd/3`, is written at its current position.

    Raises:
        InputError: the file cannot be opened for writing, or stdout is closed.
        OSError: writing fails. The error has the file name.
    """
    if path == STANDARD:
        if not sys.stdout:
            raise InputError("<stdout>: stdout is closed. Name a file to write")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    with contextlib.ExitStack() as stack:
        with opening(path):
            if path.endswith("/"):
                raise InputError(f"{path}: a folder name, expected a file name")
            check_extension(path)
            direct = _direct(target, path)
            if direct is None:
                descriptor, _ = stack.enter_context(_replacement(target.resolve()))
        if direct is not None:
            with BufferedWriter(direct) as stream:
                yield stream
            return
        # The lock lasts as long as one of the copies of the descriptor is open.
        with BufferedWriter(_Target(os.dup(descriptor), path)) as raw, compressing(raw, path) as stream:
            yield stream


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces the plain file `path` if the block ends without an error.

    For libraries that write to a path. `open_output` is for all other files.

    Raises:
        InputError: the path exists and is not a plain file.
    """
    path = path.resolve()
    if path.exists():
        check_plain(path)
    with _replacement(path) as (_, temporary):
        yield temporary


@contextlib.contextmanager
def open_temporary(path: str) -> Iterator[BinaryIO]:
    """Open a temporary file, to write and then read, for intermediate data of the output `path`.

    The file is in the folder of `path` and is removed at the end.

    Raises:
        OSError: writing fails. The error has the name of `path`.
    """
    try:
        with tempfile.TemporaryFile(dir=Path(path).resolve().parent) as stream:
            yield stream
    except OSError as error:
        error.filename = error.filename or path
        raise


def remove_temporaries(path: Path) -> None:
    """Remove the temporary files that killed processes left in the folder of an output, see `open_output`."""
    for temporary in path.parent.glob(f"{glob.escape(hidden(path.name))}.{'?' * 8}{TEMPORARY}"):
        if temporary.is_file():
            # A process that is still writing its temporary file holds the lock.
            with contextlib.suppress(OSError), temporary.open("rb") as stream:
                if _lock(stream.fileno()):
                    temporary.unlink()


def hidden(name: str) -> str:
    """Return the prefix of temporary files for a file: `.NAME`, or a digest if NAME exceeds `MAX_NAME_BYTES` bytes."""
    # File systems allow names of up to 255 bytes, including the part after the prefix.
    data = os.fsencode(name)
    return f".{name}" if len(data) <= MAX_NAME_BYTES else f".{hashlib.sha256(data).hexdigest()[:32]}"


@contextlib.contextmanager
def _replacement(target: Path) -> Iterator[tuple[int, Path]]:
    """Yield the descriptor and path of a temporary file, which replaces `target` if the block ends without an error.

    The file is locked until it has replaced the target. Files that killed processes left are removed first.
    """
    remove_temporaries(target)
    descriptor, temporary = _locked_temporary(target)
    try:
        yield descriptor, temporary
        os.chmod(temporary, _permissions(target))  # mkstemp gives access to the owner only
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _locked_temporary(target: Path) -> tuple[int, Path]:
    while True:
        descriptor, name = tempfile.mkstemp(TEMPORARY, f"{hidden(target.name)}.", target.parent)
        with contextlib.suppress(OSError):  # the file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Before it was locked, another process may have removed it as the file of a killed process.
        if (temporary := Path(name)).exists():
            return descriptor, temporary
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file, and return False if another process has locked it or the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _direct(target: Path, path: str) -> _Target | None:
    """Open an output that is written directly, or return None if the output is a plain file."""
    if is_open := _DESCRIPTOR.fullmatch(path):
        return _Target(os.dup(_STANDARD.get(is_open[1]) or int(is_open[2])), path)
    return _Target(target, path) if target.exists() and not target.is_file() else None


def _permissions(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode
    mask = os.umask(0o077)  # the mask can only be read by setting it, and other threads may create files meanwhile
    os.umask(mask)
    return 0o666 & ~mask
