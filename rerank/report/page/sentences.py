"""The sentences of a set as the page has them: an index of all, which is read when it opens."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from moses_io.errors import printable
from rerank.confidence.fitting import Measured
from rerank.report.changes import Change, Reranked


def packed(name: str, values: object) -> str:
    """Return an element with values by its id; its letters are those of base64, so no text of a list can end it."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/octet-stream" id="{name}">{content}</script>'


def index(
    reranked: Reranked, measured: Measured, changes: Sequence[Change], chunks: Mapping[int, int]
) -> dict[str, Any]:
    """Return columns of all sentences, a row an id; `chunks` has the number of the chunk of those with candidates.

    Gains and expected scores are of 0 … 100. A column without a value for any sentence is empty, as are all columns of
    changes (`gain`, `helped`, `clarity`) in rows of sentences that did not change.
    """
    ids, by_id = range(len(reranked.source)), {change.sentence: change for change in changes}
    estimates = [measured.estimates.get(number) for number in ids]
    gains = [change.gain if (change := by_id.get(number)) else None for number in ids]
    clarities = [change.clarity if (change := by_id.get(number)) else None for number in ids]
    return {
        "metric": printable(measured.metric),
        "source": readable(reranked.source),
        "references": [readable(lines) for lines in reranked.references],
        "before": readable(reranked.before),
        "after": readable(reranked.after),
        "gain": _column([None if gain is None else round(100 * gain, 2) for gain in gains]),
        "expected": _column([estimate and round(estimate.expected, 2) for estimate in estimates]),
        "helped": _column([estimate and _probability(estimate.helped) for estimate in estimates]),
        "clarity": _column([None if clarity is None else digits(clarity) for clarity in clarities]),
        "chunk": [chunks.get(number) for number in ids],
    }


def readable(lines: Sequence[str]) -> list[str]:
    """Return lines of text as a page may show them."""
    return [printable(line) for line in lines]


def digits(value: float) -> float:
    """Return a number with five significant digits."""
    return float(f"{value:.5g}")


def _probability(helped: float | None) -> float | None:
    return None if helped is None else round(helped, 4)


def _column(values: list[float | None]) -> list[float | None]:
    return values if any(value is not None for value in values) else []
