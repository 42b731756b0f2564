"""What a metric is to a tuner: from statistics that were summed to a score, higher is better, 0 … 1."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from features.formulas import bleu, chrf, ter

BLEU, CHRF, TER, CHRF3 = range(4)
"""Codes of the formulas; CHRF has beta 2."""


class Parts(NamedTuple):
    """What a score sums: (metrics, 3) code, first statistic, number of statistics; (metrics,) weights, 1 in all."""

    places: Integers
    weights: Array


DECIMALS = 9
"""To which scores of sentences, 0 … 1, are rounded where it counts whether they are equal."""


@dataclass(frozen=True)
class Formula:
    """A metric of statistics: its name in messages, the number of statistics, and what it sums."""

    name: str
    size: int
    parts: Parts

    def score(self, statistics: Array) -> Array:
        """Return the scores (…) of summed statistics (…, size)."""
        return self._scores(statistics, smooth=False)

    def smoothed(self, statistics: Array) -> Array:
        """Return the scores (…) of the statistics (…, size) of single sentences; BLEU is Moses' BLEU+1."""
        return self._scores(statistics, smooth=True)

    def _scores(self, statistics: Array, smooth: bool) -> Array:
        rows = np.ascontiguousarray(statistics, dtype=np.float64).reshape(-1, self.size)  # (n, size)
        return _values(rows, self.parts, smooth).reshape(statistics.shape[:-1])  # (…)


@compiled(_nrt=False)
def value(row: Array, parts: Parts, smooth: bool) -> Any:
    """Return the weighted score of statistics (size,), in their type."""
    real = row.dtype.type
    total = real(0)
    for number in range(len(parts.places)):
        code, start, size = parts.places[number]
        own = row[start : start + size]
        if code == BLEU:
            score = bleu(own, smooth)
        elif code == CHRF:
            score = real(chrf(own, 2))
        elif code == CHRF3:
            score = real(chrf(own, 3))
        else:
            score = real(ter(own))
        total = real(total + real(real(parts.weights[number]) * score))
    return total


@compiled(_nrt=False)
def length(row: Array, parts: Parts) -> Any:
    """Return about how many words the references have: as counted by BLEU and TER, a sixth of the letters for chrF."""
    real = row.dtype.type
    code, start, _ = parts.places[0]
    if code in (CHRF, CHRF3):
        return real(row[start + 1] / real(6))
    return row[start + 8] if code == BLEU else row[start + 1]


@compiled()
def _values(rows: Array, parts: Parts, smooth: bool) -> Array:
    scores = np.empty(len(rows), dtype=rows.dtype)  # (n,)
    for number in range(len(rows)):
        scores[number] = value(rows[number], parts, smooth)
    return scores
