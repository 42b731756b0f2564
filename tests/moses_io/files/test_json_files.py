import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moses_io.files.errors import InputError
from moses_io.files.json_files import MAX_BYTES, read_json, read_record, record_of

Write = Callable[[str, "str | bytes"], Path]


def test_read_a_value(write: Write) -> None:
    assert read_json(write("a.json", '{"a": [1, "ä"]}\n')) == {"a": [1, "ä"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.json:1: not JSON (Expecting value)"),
        ('{\n"a": 1,\n', "a.json:3: not JSON (Expecting property name"),
        (b'{"a": "\xff"}', "a.json: not JSON (not in UTF-8)"),
        (b'"a\0b"', "a.json:1: not JSON (Invalid control character at)"),
        ("\0", "a.json:1: not JSON (Expecting value)"),
        ("[" * 100_000, "a.json: not readable JSON (nested too deeply)"),
        ('{"a":' * 100_000, "a.json: not readable JSON (nested too deeply)"),
        ("9" * 5000, "a.json: not readable JSON (a number of too many digits)"),
        ("\ufeff1", "a.json:1: not JSON (Unexpected UTF-8 BOM"),
    ],
)
def test_invalid_json_is_an_error_in_one_line(write: Write, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_json(write("a.json", content))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_missing_special_and_large_files_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    for name, message in (
        ("", "a folder, expected a plain file"),
        ("pipe", "pipe: a pipe or a device, expected a plain file"),
        ("nowhere", "nowhere: No such file or directory"),
        ("large", "large: larger than 4 MB"),
    ):
        with pytest.raises(InputError, match=message):
            read_json(tmp_path / name)


class Part(NamedTuple):
    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Inner:
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("expected a whole number from 1")


@dataclass(frozen=True)
class Outer:
    inner: Inner
    parts: list[Part]
    weights: dict[str, tuple[float, ...]]
    p: float | None
    chosen: bool = False


WRITTEN: dict[str, Any] = {
    "inner": {"count": 2},
    "parts": [["a", [1, 2.5]]],
    "weights": {"LM0": [0.5], "TM0": []},
    "p": None,
    "more": "of another version",
}


def test_read_a_nested_record(write: Write) -> None:
    read = read_record(write("a.json", json.dumps(WRITTEN)), Outer)
    assert read == Outer(Inner(2), [Part("a", (1.0, 2.5))], {"LM0": (0.5,), "TM0": ()}, None)
    assert type(read.parts[0].values[0]) is float
    assert read_record(str(write("b.json", '{"a": 1}')), dict[str, float]) == {"a": 1}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"inner": [2]}, "Expected `object`, got `array` - at `$.inner`"),
        ({"inner": {}}, "Object missing required field `count` - at `$.inner`"),
        ({"inner": {"count": 2.5}}, "Expected `int`, got `float` - at `$.inner.count`"),
        ({"inner": {"count": True}}, "Expected `int`, got `bool` - at `$.inner.count`"),
        ({"inner": {"count": 0}}, "expected a whole number from 1 - at `$.inner`"),
        ({"parts": [["a", [1, "2"]]]}, "Expected `float`, got `str` - at `$.parts[0][1][1]`"),
        ({"parts": [["a"]]}, "Expected `array` of length 2, got 1 - at `$.parts[0]`"),
        ({"parts": [[1, []]]}, "Expected `str`, got `int` - at `$.parts[0][0]`"),
        ({"weights": {"a\n\x1b": [None]}}, "Expected `float`, got `null` - at `$.weights[...][0]`"),
        ({"weights": {"a": [float("nan")]}}, "expected a number up to 3.4e+38, found nan"),
        ({"p": -float("inf")}, "expected a number up to 3.4e+38, found -inf"),
        ({"p": 1e39}, "expected a number up to 3.4e+38, found 1e+39"),
        ({"inner": {"count": 10**400}}, f"expected a number up to 3.4e+38, found 1{'0' * 79}…"),
        ({"chosen": 1}, "Expected `bool`, got `int` - at `$.chosen`"),
    ],
)
def test_a_record_with_wrong_types_is_an_error_in_one_line(write: Write, change: dict[str, Any], fault: str) -> None:
    path = write("a.json", json.dumps(WRITTEN | change))
    with pytest.raises(InputError) as caught:
        read_record(path, Outer)
    assert str(caught.value) == f"{path}: damaged or edited, `moses-rerank` cannot read it ({fault})"


def test_a_record_nested_too_deeply_is_an_error() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InputError, match=r"a\.json: damaged or edited, .* \(maximum recursion depth exceeded"):
        record_of(value, Outer, "a.json")
