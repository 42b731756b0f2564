"""BLEU of systems by how sure Moses was of its own choice."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from rerank.analysis.bleu import corpus_bleu
from rerank.analysis.listed import Listed

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


def by_margin(listed: Listed, systems: Mapping[str, Array]) -> list[Quarter]:
    """Return quarters of the sentences of a list, least sure first.

    There are none where the list has no totals, all margins are equal, or sentences are fewer than quarters.

    A sentence with a single candidate is the surest. Of each system there are the (lines, 9) statistics of BLEU.
    """
    margins = listed.margins
    if np.isnan(margins).any() or len(margins) < len(QUARTERS) or margins.min() == margins.max():
        return []
    order = np.argsort(margins, kind="stable")  # (n,)
    return [_quarter(listed, part, systems) for part in np.array_split(order, len(QUARTERS))]


def _quarter(listed: Listed, part: Integers, systems: Mapping[str, Array]) -> Quarter:
    ids, margins = listed.sentences[part], listed.margins[part]
    lower, upper = (float(value) if np.isfinite(value) else None for value in (margins[0], margins[-1]))
    scores = {name: corpus_bleu(rows[ids].sum(axis=0)) for name, rows in systems.items()}
    return Quarter(lower=lower, upper=upper, sentences=len(part), scores=scores)
