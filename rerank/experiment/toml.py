"""TOML files: read with limits, written with comments, and checked for code that does not belong to the user."""

import codecs
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from features.request import runs_code
from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.streams import read_start_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES, MAX_LINE_BYTES, MAX_LEVELS = 2**18, 10_000, 16
"""Maximum bytes of a file, maximum bytes of a line, and maximum nesting of tables and lists."""


def read_toml(path: str) -> dict[str, Any]:
    """Return the table in a file.

    Raises:
        InputError: the file is no plain file, or as `parse_toml`.
    """
    return parse_toml(read_start_of(path, MAX_BYTES + 1), path)


def parse_toml(content: bytes, path: str) -> dict[str, Any]:
    """Return the table in the content of a file. `path` names the file in messages.

    Raises:
        InputError: the content is too large, is not TOML, or has values that no setting has: text with a NUL, integers
            of more than 64 bits, or more than `MAX_LEVELS` nested tables and lists.
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: larger than {MAX_BYTES // 2**10} KB, expected a small file of TOML")
    if max(map(len, content.split(b"\n"))) > MAX_LINE_BYTES:
        raise InputError(f"{path}: expected lines of at most {MAX_LINE_BYTES:,} bytes")
    try:
        table = tomllib.loads(content.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8, which TOML requires") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError:
        raise InputError(f"{path}: a number of too many digits") from None
    _check_values(table, path)
    return table


def as_table(value: Any, key: str) -> dict[str, Any]:
    """Return a value that is a table. Raise `InputError`, with the key `key`, if it is not."""
    if not isinstance(value, dict):
        raise InputError(f"{key}: expected a table, found {value!r}")
    return value


def path_of(table: dict[str, Any], key: str, prefix: str = "") -> str:
    """Return the path at a key. Raise `InputError`, with prefix and key, if there is none."""
    path = table.get(key)
    if not isinstance(path, str):
        raise InputError(f"{prefix}{key}: expected a path, found {'nothing' if path is None else repr(path)}")
    return path


RENAMED = {
    "start": "initial_weights",
    "choose": "selection",
    "trained": "trained_models",
    "start-from": "pretrained_model",
    "right-to-left": "right_to_left",
    "paper-sizes": "paper_sizes",
}
"""Former keys with their present names, for messages."""


def check_keys(table: dict[str, Any], known: Sequence[str], prefix: str = "") -> None:
    """Raise `InputError`, with the present name or the nearest known key, if a key is unknown."""
    for key in table:
        if key not in known:
            present = RENAMED.get(key)
            hint = f". It is now {present}" if present in known else nearest(key, list(known))
            raise InputError(f"unknown key {prefix}{key}{hint}")


def _check_values(table: dict[str, Any], path: str) -> None:
    """Raise `InputError` for values that no setting has."""
    level: list[Any] = [table]  # level by level, so that deep nesting cannot exhaust the stack
    for _ in range(MAX_LEVELS):
        for value in level:
            if isinstance(value, str) and "\0" in value:
                raise InputError(f"{path}: a NUL in {value[:40]!r}")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise InputError(f"{path}: a whole number of more than 64 bits")
        parts = [part for value in level if isinstance(value, dict) for pair in value.items() for part in pair]
        level = parts + [part for value in level if isinstance(value, list) for part in value]
    if level:
        raise InputError(f"{path}: more than {MAX_LEVELS} tables or lists inside each other")


INPUT_FILTER = "input_filter"
"""Key of the filters for all texts, the only key outside `SECTIONS` that is text and no path."""

SECTIONS = ("models", "pretrained", "features", "shortlist", "tuning", "report")
"""Tables that get a header and one line per entry. Other tables are written on one line."""

Comments = Mapping[str, Sequence[str]]
"""Comment lines by the key that they precede, `TABLE.KEY` inside `SECTIONS`.

The empty key is the top of the file, and `TABLE.` the end of a table.
"""


def write_experiment(values: Mapping[str, Any], comments: Comments) -> str:
    """Return the text of an experiment file. `read_toml` reads `values` from it."""
    blocks = [_comment_lines(comments, "")]
    tables = {key: value for key, value in values.items() if key in SECTIONS or isinstance(value, list)}
    for key, value in values.items():
        if key not in tables:
            if key in comments:
                blocks.append(_comment_lines(comments, key))
            blocks[-1] += entry(key, value)
    for key, value in tables.items():
        each = [(f"[[{key}]]", table) for table in value] if isinstance(value, list) else [(f"[{key}]", value)]
        bodies = [f"{header}\n{_lines(key, table, comments)}" for header, table in each]
        blocks.append(_comment_lines(comments, key) + "\n".join(bodies))
    return "\n".join(block for block in blocks if block)


def moved(values: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """Return the values except `SECTIONS`, with paths relative to `old` changed to paths relative to `new`."""

    def from_new(path: str) -> str:
        return path if os.path.isabs(path) else os.path.relpath(old / path, new)

    return {
        key: value if key == INPUT_FILTER else with_paths(value, from_new)
        for key, value in values.items()
        if key not in SECTIONS
    }


def with_paths(value: Any, change: Callable[[str], str]) -> Any:
    """Return a path, or a list or table of paths, with `change` applied to each path, except to `name` and to bools."""
    if isinstance(value, dict):
        return {key: each if key == "name" else with_paths(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [with_paths(each, change) for each in value]
    return value if isinstance(value, bool) else change(value)


def _lines(key: str, table: Mapping[str, Any], comments: Comments) -> str:
    entries = "".join(_comment_lines(comments, f"{key}.{name}") + entry(name, each) for name, each in table.items())
    return entries + _comment_lines(comments, f"{key}.")


def _comment_lines(comments: Comments, key: str) -> str:
    return "".join(f"# {line}\n" for line in comments.get(key, ()))


def entry(key: str, value: Any) -> str:
    """Return the line of a key and its value."""
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
    """Return a string in TOML, which has the escapes of JSON and also escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def feature_texts(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Return `KIND[:ARG]` of each feature by label. Raise `InputError` if a value is no text."""
    texts = as_table(experiment.get("features", {}), "features")
    for label, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"features.{label}: expected KIND[:ARG] as text, found {shown(text)}")
    return texts


def is_own(path: str) -> bool:
    """Return whether a file belongs to the current user and is inside the working folder, after resolving links."""
    resolved = Path(path).resolve()
    return (
        resolved.is_relative_to(Path.cwd().resolve()) and resolved.is_file() and resolved.stat().st_uid == os.geteuid()
    )


def check_code(experiment: Mapping[str, Any], path: str, allow: bool) -> None:
    """Raise `InputError`, before code is loaded, if a feature runs code and the file is not the user's own (`is_own`).

    Args:
        experiment: the tables of an experiment file.
        path: the file.
        allow: whether features may run code from any file.

    Raises:
        InputError: a feature runs code without permission. The message names it.
    """
    features = feature_texts(experiment)
    with_code = [label for label, text in features.items() if runs_code(text)]
    if with_code and not allow and not is_own(path):
        label = with_code[0]
        where = "in a file that is not the user's own in the working folder"
        raise InputError(
            f"feature {shown(label)}, {shown(features[label])}, runs code {where}. --allow-code permits it"
        )
