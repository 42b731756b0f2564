import bz2
import gzip
import io
import lzma
import os
import resource
import stat
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from moses_io.files import streams
from moses_io.files.errors import InputError
from moses_io.files.streams import (
    TEMPORARY,
    Lines,
    digest,
    hidden,
    numbered_lines,
    open_input,
    open_output,
    open_temporary,
    remove_temporaries,
    replacing,
)


@pytest.mark.parametrize(("suffix", "module"), [("gz", gzip), ("bz2", bz2), ("xz", lzma)])
def test_compression_by_name_and_decompression_by_content(tmp_path: Path, suffix: str, module: ModuleType) -> None:
    path, other = tmp_path / f"list.{suffix}", tmp_path / "other"
    with open_output(str(path)) as stream:
        stream.write(b"a\nb\n" * 99)
    assert module.decompress(path.read_bytes()) == b"a\nb\n" * 99
    other.write_bytes(path.read_bytes())
    assert len(list(numbered_lines(str(other)))) == 198
    other.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"other:\d+: the compressed stream is cut off"):
        list(numbered_lines(str(other)))


@pytest.mark.parametrize(
    ("suffix", "start", "kind"),
    [(".zst", b"\x28\xb5\x2f\xfd", "zstd"), (".zip", b"PK\x03\x04", "zip"), (".lz4", b"\x04\x22\x4d\x18", "lz4")],
)
def test_other_formats_of_compression_are_errors(tmp_path: Path, suffix: str, start: bytes, kind: str) -> None:
    path = tmp_path / f"list{suffix}"
    with pytest.raises(InputError, match=rf"list{suffix}: {kind} is not supported\. Expected gzip \(\.gz\)"):
        open_output(str(path)).__enter__()
    assert not list(tmp_path.iterdir())
    path.write_bytes(start + b"0 ||| a ||| 1\n")
    with pytest.raises(InputError, match=rf"list{suffix}: compressed as {kind}\. Expected gzip"):
        list(numbered_lines(str(path)))


def test_a_plain_file_with_the_name_of_a_compressed_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_bytes(b"a\nb\n")
    assert list(numbered_lines(str(tmp_path / "plain.gz"))) == [(1, b"a\n"), (2, b"b\n")]


def test_only_lf_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("a\u0085b\u2028c\rd\x0be\r\nf".encode())
    assert [line for _, line in numbered_lines(str(path))] == ["a\u0085b\u2028c\rd\x0be\r\n".encode(), b"f"]


def test_a_gzip_stream_without_its_last_blocks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(os.urandom(2000).hex().encode() + b"\n", 1)[:-200])
    with pytest.raises(InputError, match=r"cut\.gz:\d+: the compressed stream is cut off"):
        list(numbered_lines(str(path)))


def test_a_damaged_gzip_stream_is_an_error(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"some text\n" * 99))
    content[40:60] = b"\xff" * 20
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="the compressed stream is damaged"):
        list(numbered_lines(str(path)))


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: No such file or directory"), open_input("nowhere"):
        pass
    with pytest.raises(InputError, match="Is a directory"), open_input(str(tmp_path)):
        pass


def test_stdin_may_be_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(b"x\n"))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(numbered_lines("-")) == [(1, b"x\n")]


def test_output_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt), open_output(str(target)) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"before"
    with open_output(str(target)) as stream:
        stream.write(b"after")
        assert target.read_bytes() == b"before"
    assert target.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [target]


def test_only_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    target, user_file = tmp_path / "out", tmp_path / ".out.original"
    user_file.write_bytes(b"of the user")
    code = (
        "import sys\nfrom moses_io.files.streams import open_output\nwith open_output(sys.argv[1]) as stream:\n"
        "    stream.write(b'half')\n    print('begun', flush=True)\n    sys.stdin.read()\n"
    )
    first, second = (
        subprocess.Popen([sys.executable, "-c", code, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    )
    assert first.stdout and second.stdout and first.stdout.readline() == second.stdout.readline() == b"begun\n"
    assert len(list(tmp_path.glob(".out.*.temporary"))) == 2
    first.kill()
    first.communicate()
    with open_output(str(target)):
        assert len(list(tmp_path.glob(".out.*.temporary"))) == 2, (
            "the temporary files of the second process and of this one"
        )
    second.communicate()
    assert sorted(tmp_path.iterdir()) == [user_file, target]
    assert target.read_bytes() == b"half"


def test_removal_between_creation_and_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process with the same output may find the temporary file before it is locked."""
    target, create = tmp_path / "out", tempfile.mkstemp
    created: list[Path] = []

    def create_and_lose_first(suffix: str, prefix: str, folder: Path) -> tuple[int, str]:
        descriptor, name = create(suffix, prefix, folder)
        created.append(Path(name))
        if len(created) == 1:
            remove_temporaries(target)
        return descriptor, name

    monkeypatch.setattr(tempfile, "mkstemp", create_and_lose_first)
    with open_output(str(target)) as stream:
        assert [path.exists() for path in created] == [False, True]
        remove_temporaries(target)
        stream.write(b"whole")
    assert target.read_bytes() == b"whole"


def test_removal_before_the_file_replaces_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, replace = tmp_path / "out", os.replace

    def remove_and_replace(source: Path, destination: Path) -> None:
        remove_temporaries(target)
        replace(source, destination)

    monkeypatch.setattr(os, "replace", remove_and_replace)
    with open_output(str(target)) as stream:
        stream.write(b"whole")
    assert target.read_bytes() == b"whole"


def test_removal_spares_a_file_that_a_library_writes(tmp_path: Path) -> None:
    with replacing(tmp_path / "out") as temporary:
        temporary.write_bytes(b"whole")
        remove_temporaries(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"whole"


@pytest.mark.parametrize("name", ["n" * 250, "n" * 255, "ä" * 127, "a\nb"])
def test_long_and_unusual_file_names(tmp_path: Path, name: str) -> None:
    """Temporary files of a killed process are also removed."""
    target = tmp_path / name
    code = (
        "import os, sys\nfrom moses_io.files.streams import open_output\n"
        "with open_output(sys.argv[1]) as stream:\n    os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(TEMPORARY)
    with open_output(str(target)) as stream:
        stream.write(b"whole")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"] and target.exists()


def test_temporary_names_of_similar_long_names_differ(tmp_path: Path) -> None:
    assert hidden("n" * 200) == "." + "n" * 200
    assert len({hidden("n" * 240 + end) for end in "abc"}) == 3 and len(hidden("n" * 255)) < 40


def test_gzip_output_is_reproducible(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    for path in (first, second):
        with open_output(str(path)) as stream:
            stream.write(b"text\n")
    assert gzip.decompress(first.read_bytes()) == b"text\n"
    assert digest(first) == digest(second)
    assert first.read_bytes()[4:8] == bytes(4)  # the time in the header


def test_output_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)
    with open_output(str(link)) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        with open_output(str(tmp_path / "fresh")):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_output_to_a_missing_folder_is_an_error() -> None:
    with pytest.raises(InputError, match="nowhere/out: No such file or directory"), open_output("nowhere/out"):
        pass


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_output_to_an_open_file_is_appended(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").write_bytes(b"old\n")
    with open(tmp_path / "kept", "ab") as kept:
        with open_output(name.format(kept.fileno())) as stream:
            stream.write(b"new\n")
        kept.write(b"last\n")
    assert (tmp_path / "kept").read_bytes() == b"old\nnew\nlast\n"
    with pytest.raises(InputError, match="/dev/fd/987654: Bad file descriptor"), open_output("/dev/fd/987654"):
        pass


def test_a_folder_name_as_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="new/: a folder name, expected"), open_output(f"{tmp_path}/new/"):
        pass
    assert not list(tmp_path.iterdir())


def test_output_to_devices_and_pipes() -> None:
    with open_output(os.devnull) as stream:
        stream.write(b"gone")
    assert not Path(os.devnull).is_file()
    reading, writing = os.pipe()
    with open_output(f"/dev/fd/{writing}") as stream:
        stream.write(b"through a pipe")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"through a pipe"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_too_long_lines_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """Memory does not exceed the limit on the length of a line, even for compressed files."""
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "list"
    path.write_bytes(pack(b"a\n" + b"b" * 999 + b"\n" + b"c" * 5_000_000))
    lines = numbered_lines(str(path))
    assert [len(next(lines)[1]), len(next(lines)[1])] == [2, 1000]
    tracemalloc.start()
    with pytest.raises(InputError, match=r"list:3: expected lines of at most 1,000 bytes"):
        next(lines)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("text", ["a\n\n", "a\nb", "\n\n"])
def test_several_lines_in_place_of_one_line_are_an_error(text: str) -> None:
    lines = numbered_lines(Lines("<lines>", ["first\n", text]))
    assert next(lines) == (1, b"first\n")
    with pytest.raises(InputError, match="<lines>:2: expected one line, found"):
        next(lines)


def test_a_file_name_with_a_nul_is_an_error() -> None:
    for opened in (open_input, open_output):
        with pytest.raises(InputError, match="a file name cannot contain NUL"), opened("a\0b"):
            pass


def test_text_that_begins_like_bzip2(tmp_path: Path) -> None:
    (tmp_path / "names").write_bytes(b"BZhang sagt\n")
    assert list(numbered_lines(str(tmp_path / "names"))) == [(1, b"BZhang sagt\n")]
    (tmp_path / "empty").write_bytes(bz2.compress(b""))
    assert list(numbered_lines(str(tmp_path / "empty"))) == []


def test_the_digest_of_a_pipe_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a pipe or a device, expected a plain file"):
        digest(tmp_path / "pipe")


def test_errors_of_reading_name_the_file() -> None:
    with pytest.raises(InputError, match="/proc/self/mem: Input/output error"), open_input("/proc/self/mem"):
        pass


def test_closed_standard_streams_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputError, match="<stdin>: stdin is closed"), open_input("-"):
        pass
    with pytest.raises(InputError, match="<stdout>: stdout is closed"), open_output("-"):
        pass


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_a_file_size_limit_is_an_error_with_the_file_name(tmp_path: Path, name: str) -> None:
    path, limits = tmp_path / name, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught, open_output(str(path)) as stream:
            stream.write(os.urandom(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.filename, list(tmp_path.iterdir())) == (str(path), [])


def test_temporary_files_between_steps_are_removed(tmp_path: Path) -> None:
    path, limits = tmp_path / "page", resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_temporary(str(path)) as stream:
        stream.write(b"one\ntwo\n")
        stream.seek(0)
        assert list(stream) == [b"one\n", b"two\n"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught, open_temporary(str(path)) as stream:
            stream.write(os.urandom(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.filename, list(tmp_path.iterdir())) == (str(path), [])


def test_a_full_device_is_an_error_with_the_file_name() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"), open_output("/dev/full") as stream:
        stream.write(b"x")


def test_a_replaced_file_is_complete_or_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as temporary:
        temporary.write_bytes(b"one")
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_bytes(b"two")
        raise KeyboardInterrupt
    assert [each.name for each in tmp_path.iterdir()] == ["file"] and path.read_bytes() == b"one"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_replacing_a_device_is_an_error() -> None:
    expected = pytest.raises(InputError, match="/dev/full: a pipe or a device, expected a plain file")
    with expected, replacing(Path("/dev/full")):
        pass
