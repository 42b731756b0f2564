"""BLEU as sums: statistics of a candidate → sum over a corpus → score. As Moses' BleuScorer counts it.

Tokens are the maximal runs without an ASCII space, order 4, the closest reference length (of two equally close ones
the shorter), no smoothing: 0 if an order has no match. Statistics of a candidate are
`match1 total1 … match4 total4 reflength`, as in Moses' scores.dat.
"""

from collections.abc import Sequence

import numpy as np

from features.ngrams import ORDER, Ngrams, count_ngrams
from rerank.candidates import Array

STATISTICS = 2 * ORDER + 1
SIGNATURE = "BLEU|tok:none|smooth:none|reflen:closest"


class SentenceReferences:
    """The references of one sentence, counted once for all its candidates."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self._lengths = [len(reference) for reference in references]
        self._most = Ngrams()
        for reference in references:
            self._most |= count_ngrams(reference)

    def statistics(self, hypothesis: Sequence[str]) -> list[int]:
        """Return the statistics of a hypothesis."""
        length = len(hypothesis)
        matches = [0] * ORDER
        for ngram, count in count_ngrams(hypothesis).items():
            matches[len(ngram) - 1] += min(count, self._most.get(ngram, 0))
        totals = [max(0, length - order) for order in range(ORDER)]
        closest = min(self._lengths, key=lambda reference: (abs(reference - length), reference))
        return [*(value for pair in zip(matches, totals, strict=True) for value in pair), closest]


def corpus_bleu(statistics: Array) -> Array:
    """Return BLEU, 0 … 1, of summed statistics (…, 9); the last axis goes away."""
    matches, totals = statistics[..., 0:-1:2], statistics[..., 1:-1:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.log(matches / totals).mean(axis=-1)
        brevity = np.minimum(0.0, 1 - statistics[..., -1] / statistics[..., 1])
        scores: Array = np.where((matches > 0).all(axis=-1), np.exp(precision + brevity), 0.0)
    return scores


def sentence_bleu(statistics: Array) -> Array:
    """Return BLEU+1, 0 … 1, of the statistics of single sentences (…, 9), as Moses' sentence-bleu smooths.

    1 is added to the matches and totals of all orders, the unigram too; the reference length is not smoothed.
    """
    matches, totals = statistics[..., 0:-1:2], statistics[..., 1:-1:2]
    precision = np.log((matches + 1) / (totals + 1)).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = statistics[..., -1] / statistics[..., 1]
    brevity = np.minimum(0.0, 1 - np.nan_to_num(ratio, nan=1.0, posinf=np.inf))
    scores: Array = np.exp(precision + brevity)
    return scores
