import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.errors import InputError
from moses_io.json_files import MOST_BYTES, read_json

Write = Callable[[str, "str | bytes"], Path]


def test_a_value(write: Write) -> None:
    assert read_json(write("a.json", '{"a": [1, "ä"]}\n')) == {"a": [1, "ä"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.json:1: not JSON (Expecting value)"),
        ('{\n"a": 1,\n', "a.json:3: not JSON (Expecting property name"),
        (b'{"a": "\xff"}', "a.json: not JSON (not in UTF-8)"),
        (b'"a\0b"', "a.json:1: not JSON (Invalid control character at)"),
        ("\0", "a.json:1: not JSON (Expecting value)"),
        ("[" * 100_000, "a.json: not JSON that can be read (nested too deeply)"),
        ('{"a":' * 100_000, "a.json: not JSON that can be read (nested too deeply)"),
        ("9" * 5000, "a.json: not JSON that can be read (a number of too many digits)"),
        ("\ufeff1", "a.json:1: not JSON (Unexpected UTF-8 BOM"),
    ],
)
def test_what_is_no_json_is_told_in_a_line(write: Write, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_json(write("a.json", content))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_file_of_a_sensible_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    for name, message in (
        ("", "a folder, expected a plain file"),
        ("pipe", "pipe: a pipe or a device, expected a plain file"),
        ("nowhere", "nowhere: No such file or directory"),
        ("large", "large: larger than 4 MB"),
    ):
        with pytest.raises(InputError, match=message):
            read_json(tmp_path / name)
