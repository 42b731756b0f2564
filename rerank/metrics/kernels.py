"""Metrics of single rows of statistics, compiled: the innermost loop of every tuner.

All arithmetic is in the type of the arrays, float64, or float32 where Moses is followed to the last bit.
"""

from typing import Any

import numba
import numpy as np

from rerank.candidates import Array, Integers

BLEU, CHRF, TER = range(3)


@numba.njit(cache=True)
def _bleu(row: Array, smooth: bool) -> Any:
    real = row.dtype.type
    more = real(1 if smooth else 0)
    log_bleu = real(0)
    for order in range(4):
        match, total = row[2 * order] + more, row[2 * order + 1] + more
        if match == 0:
            return real(0)
        log_bleu = real(log_bleu + real(np.log(match) - np.log(total)))
    log_bleu = real(log_bleu / real(4))
    if row[1] > 0:
        brevity = real(real(1) - real(row[8] / row[1]))
        if brevity < 0:
            log_bleu = real(log_bleu + brevity)
    elif row[8] > 0:
        return real(0)
    return real(np.exp(log_bleu))


@numba.njit(cache=True)
def _chrf(row: Array) -> Any:
    precision = recall = 0.0
    orders = 0
    for order in range(len(row) // 3):
        hypothesis, reference, match = row[3 * order], row[3 * order + 1], row[3 * order + 2]
        if hypothesis > 0 and reference > 0:
            precision += match / hypothesis
            recall += match / reference
            orders += 1
    if orders == 0 or precision + recall == 0:
        return 0.0
    return 5 * precision * recall / ((4 * precision + recall) * orders)


@numba.njit(cache=True)
def _ter(row: Array) -> Any:
    if row[1] > 0:
        return 1 - row[0] / row[1]
    return 0.0 if row[0] > 0 else 1.0


@numba.njit(cache=True)
def value(row: Array, parts: Integers, weights: Array, smooth: bool) -> Any:
    """Return the weighted score of statistics (size,); see `rerank.metrics.metric.Metric`."""
    real = row.dtype.type
    total = real(0)
    for number in range(len(parts)):
        formula, start, size = parts[number]
        own = row[start : start + size]
        if formula == BLEU:
            score = _bleu(own, smooth)
        elif formula == CHRF:
            score = real(_chrf(own))
        else:
            score = real(_ter(own))
        total = real(total + real(real(weights[number]) * score))
    return total


@numba.njit(cache=True)
def length(row: Array, parts: Integers) -> Any:
    """Return about how many words the references have: as counted by BLEU and TER, a sixth of the letters for chrF."""
    real = row.dtype.type
    formula, start, _ = parts[0]
    if formula == CHRF:
        return real(row[start + 1] / real(6))
    return row[start + 8] if formula == BLEU else row[start + 1]


@numba.njit(cache=True)
def values(rows: Array, parts: Integers, weights: Array, smooth: bool) -> Array:
    """Return the scores (n,) of rows of statistics (n, size)."""
    scores = np.empty(len(rows), dtype=rows.dtype)
    for number in range(len(rows)):
        scores[number] = value(rows[number], parts, weights, smooth)
    return scores
