"""The sentences of a set as the page has them: an index of all, which is read when it opens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moses_io.errors import printable
from moses_io.weights import Weights
from rerank.confidence.measured import Measured
from rerank.metrics.filters import Filters
from rerank.report.attention import Attentions
from rerank.report.changes import Change

BEFORE, AFTER = "moses", "reranked"
"""Names of both systems."""


@dataclass(frozen=True)
class Explored:
    """A set whose sentences can be explored.

    Attributes:
        nbest: the list with all features.
        weights: those that chose.
        source: a line a sentence.
        references: perhaps none; they have gone through the filters already.
        before: Moses' choice, a line a sentence.
        after: what is chosen now.
        filters: for candidates, before they are held against references.
        measured: what is expected of the choices.
        changes: the sentences whose choice differs.
        attention: what models attended to, if any did.
    """

    nbest: str
    weights: Weights
    source: Sequence[str]
    references: Sequence[Sequence[str]]
    before: Sequence[str]
    after: Sequence[str]
    filters: Filters
    measured: Measured
    changes: Sequence[Change]
    attention: Attentions


def index(explored: Explored, chunks: Mapping[int, int]) -> dict[str, Any]:
    """Return columns of all sentences, a row an id; `chunks` has the number of the chunk of those with candidates.

    Gains and expected scores are of 0 … 100. A column without a value for any sentence is empty, as are all columns of
    changes (`gain`, `helped`, `clarity`) in rows of sentences that did not change.
    """
    ids = range(len(explored.source))
    changes = {change.sentence: change for change in explored.changes}
    estimates = [explored.measured.estimates.get(number) for number in ids]
    gains = [change.gain if (change := changes.get(number)) else None for number in ids]
    clarities = [change.clarity if (change := changes.get(number)) else None for number in ids]
    return {
        "metric": printable(explored.measured.metric),
        "source": readable(explored.source),
        "references": [readable(lines) for lines in explored.references],
        "before": readable(explored.before),
        "after": readable(explored.after),
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
