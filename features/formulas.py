"""Compiled formulas of metrics on one row of statistics, and counts of n-grams.

The formulas are the innermost loop of every tuner. BLEU is computed in the type of the row: float64, or float32 to
reproduce Moses to the last bit.
"""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from features.arrays import Array
from features.compiled import compiled


@compiled(_nrt=False)
def bleu(row: Array, smooth: bool) -> Any:
    """Return the BLEU of a row (9,) `match1 total1 … match4 total4 reflength` (Papineni et al. 2002).

    exp(1/4 sum_n log(match_n / total_n) + min(0, 1 - reflength / total1)), or 0 if a match is 0, or if only the
    hypothesis is empty. With `smooth`, 1 is added to the matches and totals of the sum, as in Moses' BLEU+1.
    """
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


@compiled(_nrt=False)
def chrf(row: Array, beta: int) -> Any:
    """Return the chrF of a row (3 · orders,) `hypothesis1 reference1 match1 …`.

    Precision and recall are averaged over the orders for which hypothesis and reference both have n-grams. Recall
    weighs `beta` times as much as precision (Popović 2015).
    """
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
    square = beta * beta
    return (square + 1) * precision * recall / ((square * precision + recall) * orders)


@compiled(_nrt=False)
def ter(row: Array) -> Any:
    """Return 1 - TER of a row (2,) `edits length` (Snover et al. 2006).

    Without reference words, return 1 if there are no edits, else 0.
    """
    if row[1] > 0:
        return 1 - row[0] / row[1]
    return 0.0 if row[0] > 0 else 1.0


ORDER = 4

Ngram = tuple[str, ...]
Ngrams = collections.Counter[Ngram]


def count_ngrams(tokens: Sequence[str]) -> Ngrams:
    """Return the counts of the n-grams of 1 … `ORDER` tokens."""
    return collections.Counter(
        tuple(tokens[start : start + length])
        for length in range(1, ORDER + 1)
        for start in range(len(tokens) - length + 1)
    )
