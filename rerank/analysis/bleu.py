"""BLEU of parts of a set as tables of systems have it, smoothing included, from statistics of single lines."""

from collections.abc import Mapping, Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from features.arrays import Array
from rerank.metrics.metric import Metric


def statistics(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Return the (n, 9) statistics of BLEU of n lines of each system, by its name; all text has been filtered.

    Raises:
        ValueError: references or systems do not have n lines.
    """
    bleu = Metric("bleu")
    counters = [bleu.counter(answers) for answers in zip(*references, strict=True)]
    return {
        name: np.array([count(line) for count, line in zip(counters, lines, strict=True)], dtype=np.float64)  # (n, 9)
        for name, lines in systems.items()
    }


def corpus_bleu(total: Array) -> float:
    """Return BLEU, 0 to 100, of summed statistics (9,); an order without matches is smoothed as sacreBLEU does."""
    *counts, reference_length = (int(value) for value in total)
    correct, candidates = counts[::2], counts[1::2]
    score: float = BLEU.compute_bleu(correct, candidates, candidates[0], reference_length, smooth_method="exp").score
    return score
