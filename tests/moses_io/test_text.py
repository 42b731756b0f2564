from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.errors import InputError
from moses_io.text import (
    decode,
    encode,
    no_number,
    number,
    parallel_lines,
    read_lines,
    read_parallel,
    read_references,
    tokens,
    whole,
)


@given(st.binary())
def test_any_bytes_survive(line: bytes) -> None:
    assert encode(decode(line)) == line


def test_only_the_ascii_space_separates_tokens() -> None:
    assert tokens(" a  b\u00a0c\u3000d\u2028e\tf ") == ["a", "b\u00a0c\u3000d\u2028e\tf"]


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffeins\r\nzw\u2028ei\n\ndrei".encode())
    assert read_lines(str(path)) == ["eins", "zw\u2028ei", "", "drei"]


def test_two_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("a\n")
    (tmp_path / "e").write_text("")
    with pytest.raises(InputError, match=r"t has 1 lines, .*s has 2"):
        read_parallel(str(tmp_path / "s"), str(tmp_path / "t"))
    with pytest.raises(InputError, match="is empty"):
        read_parallel(str(tmp_path / "e"), str(tmp_path / "e"))
    with pytest.raises(InputError, match=r"t has 1 lines, .*s has 2"):
        read_references([str(tmp_path / "s"), str(tmp_path / "t")])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\nb\nc\n", "a\n", r"t has 1 lines, .*s has 3"),
        ("a", "a\nb\nc\nd", r"t has 4 lines, .*s has 1"),
        ("", "a\n", r"t has 1 lines, .*s has 0"),
        ("", "", r"s: the file is empty; expected a sentence a line"),
    ],
)
def test_pairs_that_are_read_as_they_come(tmp_path: Path, source: str, target: str, message: str) -> None:
    paths = [str(tmp_path / side) for side in ("s", "t")]
    Path(paths[0]).write_text(f"\ufeffx\n\n{source}")
    Path(paths[1]).write_text("y\r\nz\n")
    if not source:
        assert list(parallel_lines(*paths)) == [("x", "y"), ("", "z")] == read_parallel(*paths)
    Path(paths[0]).write_text(source)
    Path(paths[1]).write_text(target)
    with pytest.raises(InputError, match=message):
        list(parallel_lines(*paths))


@pytest.mark.parametrize(
    ("token", "value", "why"),
    [
        ("-1.5e3", -1500.0, ""),
        ("3.4028235e38", 3.4028235e38, ""),
        ("3.5e38", None, "'3.5e38' is larger than 3.4e+38"),
        ("-1e999", None, "'-1e999' is larger than"),
        ("9" * 5000, None, f"'{'9' * 80}'… is larger than"),
        ("-Inf", None, "not finite (-Inf)"),
        ("1_0", None, "expected a number, found '1_0'"),
        ("٣", None, "expected a number, found '٣'"),
    ],
)
def test_numbers_are_those_of_float32(token: str, value: float | None, why: str) -> None:
    assert number(token) == value
    assert value is not None or no_number(token).startswith(why)


def test_whole_numbers_have_18_digits() -> None:
    assert [whole(token) for token in ("0", "9" * 18)] == [0, 10**18 - 1]
    assert [whole(token) for token in ("", "-1", "²", "٣", "1_0", "9" * 19, "9" * 5000)] == [None] * 7
