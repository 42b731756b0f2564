"""What there is to choose from, and what is chosen, among the first candidates of each sentence."""

from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from rerank.analysis.bleu import corpus_bleu
from rerank.analysis.listed import Listed
from rerank.candidates import highest
from rerank.metrics.metric import Metric

STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Depth:
    """The first candidates of each sentence, in the order of the list.

    Attributes:
        candidates: how many, at most.
        choice: BLEU, 0 to 100, of what the weights choose among them; None without references.
        best: that of those with the highest smoothed sentence BLEU.
        deeper: share of the sentences, 0 to 1, for which the weights choose another one that lies deeper.
    """

    candidates: int
    choice: float | None
    best: float | None
    deeper: float


def by_depth(listed: Listed) -> list[Depth]:
    """Look at the first 1, 2, 5, 10, 20, 50, … candidates of each sentence, at last at all."""
    offsets = listed.offsets
    sizes = np.diff(offsets)  # (n,)
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)  # (N,) in the list of the sentence, from 0
    chosen = places[highest(listed.scores, offsets)]  # (n,)
    quality = None if listed.statistics is None else Metric("bleu").formula.smoothed(listed.statistics)  # (N,)

    def bleu(values: Array, depth: int) -> float | None:
        if listed.statistics is None:
            return None
        rows = highest(np.where(places < depth, values, -np.inf), offsets)  # (n,)
        return corpus_bleu(listed.statistics[rows].sum(axis=0) + listed.missing)

    return [
        Depth(
            candidates=depth,
            choice=bleu(listed.scores, depth),
            best=None if quality is None else bleu(quality, depth),
            deeper=float(np.mean(chosen >= depth)),
        )
        for depth in _depths(int(sizes.max()))
    ]


def _depths(longest: int) -> list[int]:
    steps = [step * 10**power for power in range(len(str(longest))) for step in STEPS]
    return [*(step for step in steps if step < longest), longest]
