"""A list, read once for all that looks at it: sentence after sentence with what references say of its candidates."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from features.progress import with_bar
from moses_io.nbest import SentenceList, check_id, read_nbest, without_marks
from moses_io.streams import Lines
from rerank.metrics.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric


class JudgedCandidates(NamedTuple):
    """What references say of the N candidates of a sentence.

    Attributes:
        statistics: (N, 9) of BLEU.
        quality: (N,) smoothed sentence BLEU, 0 … 1.
    """

    statistics: Array
    quality: Array


class Listed(NamedTuple):
    """A sentence of a list.

    Attributes:
        candidates: as the list has them.
        texts: of the candidates, filtered.
        judged: what references say of them; None without references.
    """

    candidates: SentenceList
    texts: Sequence[str]
    judged: JudgedCandidates | None


def read_listed(
    nbest: str | Lines, references: Sequence[Sequence[str]], size: int, filters: Filters
) -> Iterator[Listed]:
    """Yield the sentences of a list, of which the texts beside it have `size`, one at a time.

    The filters are for the list; references have gone through them already.

    Raises:
        InputError: the list cannot be read, has segmentation marks that no filter takes away, or an id beyond `size`.
    """
    bleu, beside = Metric("bleu"), "reference" if references else "translation"
    lists = read_nbest(nbest) if filters.marks else without_marks(read_nbest(nbest))
    for candidates in with_bar("read candidates", lists, size):
        check_id(candidates, size, beside)
        texts, judged = [filters(hypothesis.text) for hypothesis in candidates.hypotheses], None
        if references:
            count = bleu.counter([lines[candidates.sentence] for lines in references])
            statistics = np.array([count(text) for text in texts], dtype=np.float64)  # (N, 9)
            quality = np.round(bleu.formula.smoothed(statistics), DECIMALS)  # (N,)
            judged = JudgedCandidates(statistics=statistics, quality=quality)
        yield Listed(candidates, texts, judged)
