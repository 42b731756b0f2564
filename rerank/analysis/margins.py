"""BLEU of systems by how sure Moses was of its own choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from moses_io.nbest import SentenceList
from rerank.analysis.bleu import corpus_bleu
from rerank.analysis.origins import having

QUARTERS = ("least sure", "less sure", "surer", "surest")
"""What they are called, in order."""


@dataclass(frozen=True)
class Quarter:
    """Sentences by the margin of Moses' choice.

    Attributes:
        lower: the least margin.
        upper: the largest.
        sentences: how many.
        scores: by system, BLEU of these sentences as a corpus, 0 to 100.
    """

    lower: float
    upper: float
    sentences: int
    scores: dict[str, float]


class Margins:
    """Collects the margins of one sentence after the other.

    Args:
        lists: those that the list was merged of, perhaps none; see `margin`.
    """

    def __init__(self, lists: Sequence[str]) -> None:
        self._lists = lists
        self._sentences: list[int] = []
        self._margins: list[float] = []

    def add(self, candidates: SentenceList) -> None:
        """Add a sentence; one without a margin is left out."""
        own = margin(candidates, self._lists)
        if own is not None:
            self._sentences.append(candidates.sentence)
            self._margins.append(own)

    def quarters(self, systems: Mapping[str, Array]) -> list[Quarter]:
        """Return quarters of the sentences that have a margin, least sure first.

        There are none where all margins are equal, or sentences are fewer than quarters. Of each system there are the
        (lines, 9) statistics of BLEU.
        """
        margins, sentences = np.array(self._margins), np.array(self._sentences)  # (n,), (n,)
        if len(margins) < len(QUARTERS) or margins.min() == margins.max():
            return []
        order = np.argsort(margins, kind="stable")  # (n,)
        return [_quarter(sentences[part], margins[part], systems) for part in np.array_split(order, len(QUARTERS))]


def margin(candidates: SentenceList, lists: Sequence[str]) -> float | None:
    """Return by how much the total of the decoder's choice is above the highest one of another text.

    It is below 0 if the decoder did not choose by total. There is none where there is no other text, the list has no
    totals, or the decoder's output is not among the candidates. Of a merged list only the candidates count
    that the first of its lists has which knows the sentence: the others have no totals of their own.
    """
    if candidates.moses_choice is None:
        return None
    first = candidates.hypotheses[candidates.moses_choice]
    origin = having(first, lists)[:1]
    others = [each for each in candidates.hypotheses if each.text != first.text]
    totals = [each.total for each in others if having(each, lists)[:1] == origin]
    known = [total for total in totals if total is not None]
    return None if first.total is None or not known else first.total - max(known)


def _quarter(ids: Integers, margins: Array, systems: Mapping[str, Array]) -> Quarter:
    scores = {name: corpus_bleu(rows[ids].sum(axis=0)) for name, rows in systems.items()}
    return Quarter(lower=float(margins[0]), upper=float(margins[-1]), sentences=len(ids), scores=scores)
