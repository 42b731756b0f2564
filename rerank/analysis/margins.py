"""BLEU of systems by how sure Moses was of its own choice."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from moses_io.nbest import SentenceList
from rerank.analysis.bleu import corpus_bleu

QUARTERS = ("least sure", "less sure", "surer", "surest")
"""What they are called, in order."""


@dataclass(frozen=True)
class Quarter:
    """Sentences by the margin of Moses' choice.

    Attributes:
        lower: the least margin; None where no sentence has a second candidate.
        upper: the largest; None where one has none.
        sentences: how many.
        scores: by system, BLEU of these sentences as a corpus, 0 to 100.
    """

    lower: float | None
    upper: float | None
    sentences: int
    scores: dict[str, float]


class Margins:
    """Collects the margins of one sentence after the other."""

    def __init__(self) -> None:
        self._sentences: list[int] = []
        self._margins: list[float] = []

    def add(self, candidates: SentenceList) -> None:
        """Add a sentence."""
        self._sentences.append(candidates.sentence)
        self._margins.append(margin(candidates))

    def quarters(self, systems: Mapping[str, Array]) -> list[Quarter]:
        """Return quarters of the sentences, least sure first.

        There are none where the list has no totals, all margins are equal, or sentences are fewer than quarters.

        A sentence with a single candidate is the surest. Of each system there are the (lines, 9) statistics of BLEU.
        """
        margins, sentences = np.array(self._margins), np.array(self._sentences)  # (n,), (n,)
        if np.isnan(margins).any() or len(margins) < len(QUARTERS) or margins.min() == margins.max():
            return []
        order = np.argsort(margins, kind="stable")  # (n,)
        return [_quarter(sentences[part], margins[part], systems) for part in np.array_split(order, len(QUARTERS))]


def margin(candidates: SentenceList) -> float:
    """Return by how much the highest total of a sentence is above the highest one of another text.

    It is infinite where there is no other text, and nan where the list has no totals.
    """
    first = candidates.hypotheses[candidates.decoded]
    others = [each.total for each in candidates.hypotheses if each.fields[1] != first.fields[1]]
    if first.total is None:
        return math.nan
    return first.total - max((total for total in others if total is not None), default=-math.inf)


def _quarter(ids: Integers, margins: Array, systems: Mapping[str, Array]) -> Quarter:
    lower, upper = (float(value) if np.isfinite(value) else None for value in (margins[0], margins[-1]))
    scores = {name: corpus_bleu(rows[ids].sum(axis=0)) for name, rows in systems.items()}
    return Quarter(lower=lower, upper=upper, sentences=len(ids), scores=scores)
