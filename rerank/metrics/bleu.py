"""Statistics of BLEU as Moses' BleuScorer counts them; `rerank.metrics.formula` makes scores of them.

Tokens are the maximal runs without an ASCII space, order 4, no smoothing: 0 if an order has no match. The reference
length is the closest (of two equally close ones the shorter), the shortest, or the average cut to a whole number.
Statistics of a candidate are `match1 total1 … match4 total4 reflength`, as in Moses' scores.dat.
"""

from collections.abc import Sequence

from features.formulas import ORDER, Ngrams, by_length, count_ngrams

STATISTICS = 2 * ORDER + 1
SIGNATURE = "BLEU|tok:space|smooth:none|reflen:{}"


class SentenceReferences:
    """The references of one sentence, counted once for all its candidates."""

    def __init__(self, references: Sequence[Sequence[str]], length: str = "closest") -> None:
        lengths = [len(reference) for reference in references]
        self._lengths = {"shortest": [min(lengths)], "average": [sum(lengths) // len(lengths)]}.get(length, lengths)
        self._most = Ngrams()
        for reference in references:
            self._most |= count_ngrams(reference)

    def statistics(self, hypothesis: Sequence[str]) -> list[float]:
        """Return the statistics of a hypothesis."""
        length = len(hypothesis)
        counts, most = count_ngrams(hypothesis), self._most
        matches = by_length((ngram, min(counts[ngram], most[ngram])) for ngram in counts.keys() & most.keys())
        totals = [max(0, length - order) for order in range(ORDER)]
        closest = min(self._lengths, key=lambda reference: (abs(reference - length), reference))
        return [*(value for pair in zip(matches, totals, strict=True) for value in pair), closest]
