"""For any file, a reader returns or raises an `InputError`, in limited time and memory.

`scripts/fuzz` searches for more such files. Files that it finds are added to `tests/corpus`.
"""

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import random
import resource
import signal
import struct
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moses_io.decoders import formats
from moses_io.files import compression
from moses_io.files.errors import InputError
from moses_io.files.streams import numbered_lines
from moses_io.nbest import read_hypotheses

SCRIPTS = Path(__file__).parent.parent / "scripts"
SECONDS, MEGABYTES = 20, 700
"""Limits for a reader: seconds of a core, and memory in addition to that of this process."""


class TooSlow(BaseException):
    """A reader exceeds the time limit. Not an `Exception`, so that readers do not convert it to an `InputError`."""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzzing", SCRIPTS / "fuzzing.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzzing: Any = load()
each_reader = pytest.mark.parametrize("reader", fuzzing.READERS)
some = settings(max_examples=20, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Abort a reader that exceeds the time limit."""

    def too_slow(*_: object) -> None:
        raise TooSlow(f"over {SECONDS} s")

    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@each_reader
def test_valid_files_are_read(reader: str, tmp_path: Path) -> None:
    name, read = fuzzing.READERS[reader]
    found = {path.read_bytes() for path in (fuzzing.CORPUS / reader).glob("found*")}
    valid = set(fuzzing.valid_files(reader, tmp_path)) - found
    assert valid
    for number, content in enumerate(valid):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_bytes(content)
        if reader == "decoders":
            assert formats.recognize(str(path))
        read(path)


@each_reader
def test_random_bytes_and_files_of_earlier_failures(reader: str, tmp_path: Path) -> None:
    for path in (fuzzing.CORPUS / reader).glob("*"):
        fuzzing.attempt(reader, path.read_bytes(), tmp_path / "work")

    @some
    @given(st.binary(max_size=300))
    def any_bytes(content: bytes) -> None:
        fuzzing.attempt(reader, content, tmp_path / "work")

    any_bytes()


@each_reader
def test_corrupted_valid_files(reader: str, tmp_path: Path) -> None:
    """Truncated, compressed, with changed bytes, lines or numbers, or with a field of a megabyte."""
    contents = fuzzing.valid_files(reader, tmp_path)

    @some
    @given(st.integers(0, 2**32))
    def corrupted(seed: int) -> None:
        fuzzing.attempt(reader, fuzzing.mutate(contents, random.Random(seed)), tmp_path / "work")

    corrupted()


def array_that_claims(shape: str) -> bytes:
    """Return an attention file with an array of this shape but without its values."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, each in (("models", "(1,)"), ("systems", shape)):
            head = f"{{'descr': '<U3', 'fortran_order': False, 'shape': {each}, }}".ljust(117) + "\n"
            archive.writestr(
                f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"a" * 12
            )
    return content.getvalue()


COUNT = b'"features": {"LM0": 1000000000000000000'
LARGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "line of 100 MB": ("list", lambda _: b"0 ||| " + b"a " * 50_000_000),
    "compressed line of 100 MB": ("text", lambda _: gzip.compress(b"a" * 100_000_000, 1)),
    "id of 10^18": ("list", lambda content: content.replace(b"2 |||", b"1000000000000000000 |||")),
    "many features": (
        "list", lambda _: b"0 ||| a ||| " + b" ".join(b"F%d= 1" % number for number in range(60_000)) + b" ||| 0\n"
    ),
    "long number": ("list", lambda content: content.replace(b"-7.5", b"1" * 1_000_000 + b"x")),
    "long number of a table": ("lexical", lambda _: b"a b 0." + b"3" * 5_000_000),
    "blanks": ("scores", lambda _: b"0 ||| a ||| L= 1 ||| 0" + b" " * 5_000_000 + b"x\n"),
    "blanks of a log": ("answer", lambda _: b"Best point: " + b" " * 5_000_000 + b"\n"),
    "count of 10^18": ("features", lambda content: content.replace(b" 0 2 2 ", b" 0 1000000000000000000 2 ")),
    "array of 10^15": ("attention", lambda _: array_that_claims("(1000000000000000,)")),
    "array of 10^10": ("attention", lambda _: array_that_claims("(10000000000,)")),
    "tensor of 10^15": ("tensors", lambda content: struct.pack("<Q", 10**15) + content[8:]),
    "values of 10^18": ("confidence", lambda content: content.replace(b'"features": {', COUNT + b', "', 1)),
}  # fmt: skip


@pytest.mark.parametrize(("reader", "change"), LARGE.values(), ids=LARGE)
def test_files_that_claim_huge_sizes(reader: str, change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The reader runs in a child process with limited memory."""
    valid = fuzzing.valid_files(reader, tmp_path)[-1]
    content = change(valid)
    assert content != valid
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork because torch has threads
        child = os.fork()
    if not child:
        status = 1
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = pages * resource.getpagesize() + MEGABYTES * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            fuzzing.attempt(reader, content, tmp_path / "work")
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def noise(size: int) -> bytes:
    """Return text that compresses at most to about half of its size."""
    return random.Random(1).randbytes(size // 2).hex().encode()


BOMBS = {
    "empty lines": (numbered_lines, lambda: b"\n" * 5_000_000),
    "short lines": (numbered_lines, lambda: b"ab\n" * 5_000_000),
    "lines": (numbered_lines, lambda: b"the house is red .\n" * 5_000_000),
    "long lines": (numbered_lines, lambda: (b"a b " * 100_000 + b"\n") * 100),
    "candidates": (read_hypotheses, lambda: b"0 ||| a b ||| A= 1 ||| 1\n" * 1_000_000),
    "candidates behind noise": (
        read_hypotheses,
        lambda: b"0 ||| " + noise(4_000_000) + b" ||| A= 1 ||| 1\n" + b"0 ||| a b ||| A= 1 ||| 1\n" * 1_000_000,
    ),
}


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(("read", "content"), BOMBS.values(), ids=BOMBS)
def test_decompression_bombs_are_errors(
    read: Callable[[str], Iterable[object]],
    content: Callable[[], bytes],
    compress: Callable[[bytes], bytes],
    tmp_path: Path,
) -> None:
    path = tmp_path / "compressed"
    data = content()
    path.write_bytes(compress(data))
    start = time.process_time()
    with pytest.raises(InputError, match=f"{path}: suspicious compression ratio: .* expand to more than .* bytes"):
        for _ in read(str(path)):
            pass
    assert time.process_time() - start < 10
    path.write_bytes(data)
    assert sum(1 for _ in zip(read(str(path)), range(9), strict=False)) == 9


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("features", [b" LM0= -1 Distortion0= 0 WordPenalty0= -1 TM0= -1 -1 -1 -1 ", b" LM0= -1 "])
def test_repetitive_lists_are_far_below_the_limits(
    features: bytes, compress: Callable[[bytes], bytes], sample: Path, tmp_path: Path
) -> None:
    """The most repetitive list: the sample with equal features in all lines and without alignments."""
    lines = list(read_hypotheses(str(sample / "dev.nbest.gz")))
    content = b"".join(b"|||".join([*line.fields[:2], features, b" -1\n"]) for line in lines)
    compressed = compress(content)
    assert len(content) < 0.6 * compression.BYTES_LIMIT[0] * len(compressed)
    assert len(content) + compression.LIST_OVERHEAD * len(lines) < 0.6 * compression.LINES_LIMIT[0] * len(compressed)
    (tmp_path / "list").write_bytes(compressed)
    assert sum(1 for _ in read_hypotheses(str(tmp_path / "list"))) == len(lines)


def test_a_large_list_is_read(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The initial allowance does not matter for a list with an ordinary compression ratio."""
    monkeypatch.setattr(compression, "BYTES_LIMIT", (compression.BYTES_LIMIT[0], 2**20))
    monkeypatch.setattr(compression, "LINES_LIMIT", (compression.LINES_LIMIT[0], 2**22))
    lines = gzip.decompress((sample / "dev.nbest.gz").read_bytes()).splitlines(keepends=True)[:12_000]
    for compress in (gzip.compress, bz2.compress, lzma.compress):
        (tmp_path / "list").write_bytes(compress(b"".join(lines)))
        assert sum(1 for _ in read_hypotheses(str(tmp_path / "list"))) == 12_000
