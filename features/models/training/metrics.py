"""What a training tells of its epochs, in `metrics.jsonl` of a model's folder."""

from collections.abc import Sequence
from pathlib import Path

from features.models.config import METRICS
from moses_io.errors import InputError, shown
from moses_io.json_files import parse_json
from moses_io.streams import check_plain, numbered_lines
from moses_io.text import LARGEST, without_line_end


def read_epochs(folder: Path, keys: Sequence[str]) -> list[list[float]]:
    """Return some of the numbers of each epoch, by their keys; a perplexity may be infinite, or none.

    Raises:
        InputError: the folder has no such file, or a line of it is not one of an epoch.
    """
    path = folder / METRICS
    check_plain(path)
    return [_row(line, keys, f"{path}:{number}") for number, line in numbered_lines(str(path))]


def _row(line: bytes, keys: Sequence[str], place: str) -> list[float]:
    row = parse_json(without_line_end(line), place)
    values = [row.get(key) for key in keys] if isinstance(row, dict) else []
    numbers = [float(each) for each in values if isinstance(each, float) or (type(each) is int and abs(each) < LARGEST)]
    if len(numbers) != len(keys):
        raise InputError(f"{place}: expected numbers {', '.join(keys)}, found {shown(row)}")
    return numbers
