"""Metrics of trained models: the file `metrics.jsonl`, and perplexity. This module does not need torch."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from features.models.config import METRICS
from moses_io.files.errors import InputError, shown
from moses_io.files.json_files import parse_json
from moses_io.files.streams import check_plain, numbered_lines
from moses_io.files.text import MAX_VALUE, without_line_end


def perplexity(mean: float) -> float:
    """Return exp of a mean loss, infinite if it is too large for a float."""
    return math.exp(mean) if mean < 700 else math.inf


def dev_perplexity(folder: Path) -> float:
    """Return the dev perplexity of the saved weights, per word with </s>, infinite if the folder has no metrics.

    The last row with `"best": true` describes these weights. If no row has it, the lowest perplexity is returned.
    """
    rows = list(_rows(folder, ["dev_perplexity"])) if os.path.lexists(folder / METRICS) else []
    saved = [value for row, (value,) in rows if row.get("best") is True]
    return saved[-1] if saved else min((value for _, (value,) in rows), default=math.inf)


def read_epochs(folder: Path, keys: Sequence[str]) -> list[list[float]]:
    """Return some metrics of each row, by their keys. Perplexities may be infinite or NaN.

    There is a row for each epoch, then possibly one for averaged weights, and one for fine-tuning on dev.

    Raises:
        InputError: the folder has no metrics file, or a line is not valid.
    """
    return [values for _, values in _rows(folder, keys)]


def _rows(folder: Path, keys: Sequence[str]) -> Iterator[tuple[dict[str, Any], list[float]]]:
    """Yield each row and its values of some keys."""
    path = folder / METRICS
    check_plain(path)
    for number, line in numbered_lines(str(path)):
        location = f"{path}:{number}"
        row = parse_json(without_line_end(line), location)
        values = [row.get(key) for key in keys] if isinstance(row, dict) else []
        numbers = [
            float(each) for each in values if isinstance(each, float) or (type(each) is int and abs(each) < MAX_VALUE)
        ]
        if len(numbers) != len(keys):
            raise InputError(f"{location}: expected numbers {', '.join(keys)}, found {shown(row)}")
        yield row, numbers
