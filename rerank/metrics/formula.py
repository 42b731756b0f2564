"""Formulas of metrics, the form in which tuners use them: summed statistics → score, at most 1, higher is better.

Scores are at least 0, except 1-TER, which is negative if there are more edits than words of the reference.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from features.formulas import bleu, chrf, ter

BLEU, CHRF, TER, CHRF3 = range(4)
"""Codes of the formulas. CHRF has beta 2, CHRF3 has beta 3."""


class Parts(NamedTuple):
    """The metrics in a weighted sum of metrics.

    Attributes:
        layout: (metrics, 3) code, index of the first statistic, and number of statistics of each metric.
        weights: (metrics,) weights, which sum to 1.
    """

    layout: Integers
    weights: Array


DECIMALS = 9
"""Decimals to which sentence scores, 0 … 1, are rounded before they are compared for equality."""


@dataclass(frozen=True)
class Formula:
    """Formula of a metric or of a weighted sum of metrics.

    Attributes:
        name: name in messages.
        size: number of statistics.
        parts: the metrics in the sum.
    """

    name: str
    size: int
    parts: Parts

    def score(self, statistics: Array) -> Array:
        """Return the (…) corpus scores of (…, size) summed statistics."""
        return self._scores(statistics, smooth=False)

    def smoothed(self, statistics: Array) -> Array:
        """Return the (…) sentence scores of (…, size) statistics. BLEU is smoothed as Moses' BLEU+1."""
        return self._scores(statistics, smooth=True)

    def _scores(self, statistics: Array, smooth: bool) -> Array:
        rows = np.ascontiguousarray(statistics, dtype=np.float64).reshape(-1, self.size)  # (n, size)
        return _values(rows, self.parts, smooth).reshape(statistics.shape[:-1])  # (…)


@compiled(_nrt=False)
def value(row: Array, parts: Parts, smooth: bool) -> Any:
    """Return the weighted score of (size,) statistics, computed in their precision."""
    real = row.dtype.type  # each operation is rounded to it, so that float32 gives the digits of Moses' kbmira
    total = real(0)
    for number in range(len(parts.layout)):
        code, start, size = parts.layout[number]
        part = row[start : start + size]
        if code == BLEU:
            score = bleu(part, smooth)
        elif code == CHRF:
            score = real(chrf(part, 2))
        elif code == CHRF3:
            score = real(chrf(part, 3))
        else:
            score = real(ter(part))
        total = real(total + real(real(parts.weights[number]) * score))
    return total


@compiled(_nrt=False)
def length(row: Array, parts: Parts) -> Any:
    """Return the approximate reference length in words.

    BLEU and TER count it themselves. For chrF it is a sixth of the number of characters. In a sum of metrics the first
    metric decides.
    """
    real = row.dtype.type
    code, start, _ = parts.layout[0]
    if code in (CHRF, CHRF3):
        return real(row[start + 1] / real(6))
    return row[start + 8] if code == BLEU else row[start + 1]


@compiled()
def _values(rows: Array, parts: Parts, smooth: bool) -> Array:
    scores = np.empty(len(rows), dtype=rows.dtype)  # (n,)
    for number in range(len(rows)):
        scores[number] = value(rows[number], parts, smooth)
    return scores
