"""An experiment file as we write it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECTIONS = ("models", "features", "tuning")
"""Tables that have a header of their own, with an entry a line; the others stand on one line."""

Remarks = Mapping[str, Sequence[str]]
"""Comments by the key that they stand above, in `SECTIONS` `TABLE.KEY`; those of the empty key are the first lines."""


def write_experiment(values: Mapping[str, Any], remarks: Remarks) -> str:
    """Return an experiment file; `values` are what `read_toml` reads from it."""
    blocks = [_remarks(remarks, "")]
    tables = {key: value for key, value in values.items() if key in SECTIONS or isinstance(value, list)}
    for key, value in values.items():
        if key not in tables:
            if key in remarks:
                blocks.append(_remarks(remarks, key))
            blocks[-1] += entry(key, value)
    for key, value in tables.items():
        each = [(f"[[{key}]]", table) for table in value] if isinstance(value, list) else [(f"[{key}]", value)]
        bodies = [f"{header}\n{_lines(key, table, remarks)}" for header, table in each]
        blocks.append(_remarks(remarks, key) + "\n".join(bodies))
    return "\n".join(block for block in blocks if block)


def moved(values: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """Return the files of an experiment, all but `SECTIONS`, with paths from one folder made paths from another."""
    return {key: _moved(value, old, new) for key, value in values.items() if key not in SECTIONS}


def _moved(value: Any, old: Path, new: Path) -> Any:
    if isinstance(value, dict):
        return {key: each if key == "name" else _moved(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_moved(each, old, new) for each in value]
    return value if os.path.isabs(value) else os.path.relpath(old / value, new)


def _lines(key: str, table: Mapping[str, Any], remarks: Remarks) -> str:
    return "".join(_remarks(remarks, f"{key}.{name}") + entry(name, each) for name, each in table.items())


def _remarks(remarks: Remarks, key: str) -> str:
    return "".join(f"# {line}\n" for line in remarks.get(key, ()))


def entry(key: str, value: Any) -> str:
    """Return the line of a key."""
    return f"{_key(key)} = {_value(value)}\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else repr(value)


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isascii() and bare.isalnum() else _text(key)


def _text(text: str) -> str:
    """Return a string of TOML, whose escapes are those of JSON but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
