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
    rows: dict[str, list[list[float]]] = {name: [] for name in systems}
    for *answers, own in zip(*references, zip(*systems.values(), strict=True), strict=True):
        count = bleu.counter(answers)
        for name, line in zip(systems, own, strict=True):
            rows[name].append(count(line))
    return {name: np.array(lines, dtype=np.float64) for name, lines in rows.items()}  # each (n, 9)


def corpus_bleu(total: Array) -> float:
    """Return BLEU, 0 to 100, of summed statistics (9,); an order without matches is smoothed as sacreBLEU does."""
    *counts, reference_length = (int(value) for value in total)
    correct, candidates = counts[::2], counts[1::2]
    score: float = BLEU.compute_bleu(correct, candidates, candidates[0], reference_length, smooth_method="exp").score
    return score
