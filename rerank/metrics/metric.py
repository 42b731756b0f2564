"""Metrics: a candidate is counted → statistics are summed over a corpus → a formula makes a score of the sum.

BLEU counts as Moses' BleuScorer does: tokens are the maximal runs without an ASCII space, order 4, no smoothing: 0 if
an order has no match. The reference length is the closest (of two equally close ones the shorter), the shortest, or the
average cut to a whole number. Statistics of a candidate are `match1 total1 … match4 total4 reflength`, as in Moses'
scores.dat.

The statistics of chrF, chrF3 (beta 3) and chrF++ are computed by sacreBLEU, and TER has the same statistics, computed
by `rerank.metrics.edits`. A sum of metrics such as `bleu+chrf:0.7,0.3` has the statistics of both, one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from features.formulas import ORDER, Ngrams, by_length, count_ngrams
from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.text import no_number, number, tokens, without_missing
from rerank.metrics.formula import BLEU, CHRF, CHRF3, TER, Formula, Parts

Counter = Callable[[str], list[float]]
"""From the text of a candidate to its statistics."""

STATISTICS = 2 * ORDER + 1
"""Of BLEU."""


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


@dataclass(frozen=True)
class MetricKind:
    """A row of the table: the formula's code, how many statistics, their signature, and how references are counted."""

    code: int
    size: int
    signature: str
    counter: Callable[[Sequence[str]], Counter]


def _bleu(length: str) -> MetricKind:
    def counter(references: Sequence[str]) -> Counter:
        counted = SentenceReferences([tokens(reference) for reference in references], length)
        return lambda text: counted.statistics(tokens(text))

    return MetricKind(BLEU, STATISTICS, f"BLEU|tok:space|smooth:none|reflen:{length}", counter)


def _chrf(references: Sequence[str], word_order: int, beta: int = 2) -> Counter:
    from sacrebleu.metrics import chrf

    return _sacrebleu(chrf.CHRF(word_order=word_order, beta=beta), references)


def _ter(references: Sequence[str]) -> Counter:
    from rerank.metrics.edits import FastTER

    return _sacrebleu(FastTER(), references)


def _sacrebleu(scorer: Any, references: Sequence[str]) -> Counter:
    known = scorer._extract_reference_info([scorer._preprocess_segment(reference) for reference in references])
    return lambda text: list(scorer._compute_segment_statistics(scorer._preprocess_segment(text), known))


METRICS = {
    "bleu": _bleu("closest"),
    "bleu-shortest": _bleu("shortest"),
    "bleu-average": _bleu("average"),
    "chrf": MetricKind(CHRF, 18, "chrF2|nc:6|nw:0|space:no", partial(_chrf, word_order=0)),
    "chrf3": MetricKind(CHRF3, 18, "chrF3|nc:6|nw:0|space:no", partial(_chrf, word_order=0, beta=3)),
    "chrf++": MetricKind(CHRF, 24, "chrF2++|nc:6|nw:2|space:no", partial(_chrf, word_order=2)),
    "ter": MetricKind(TER, 2, "1-TER|case:lc|tok:tercom", _ter),
}


class Metric:
    """A metric, or a weighted sum of several: `bleu`, `chrf`, `chrf3`, `chrf++`, `ter`, `bleu+chrf:0.7,0.3`.

    Raises:
        InputError: an unknown metric, or weights that do not fit.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InputError(f"metric: expected a name such as 'bleu', found {shown(text)}")
        named, colon, numbers = text.partition(":")
        names = _split(named)
        weights = _weights(numbers, text) if colon else [1 / len(names)] * len(names)
        if len(weights) != len(names):
            raise InputError(f"metric {shown(text)}: expected {len(names)} weights, found {len(weights)}")
        self._kinds = kinds = [METRICS[name] for name in names]
        starts = np.cumsum([0, *(kind.size for kind in kinds)])  # (metrics + 1,)
        places = [[kind.code, start, kind.size] for kind, start in zip(kinds, starts, strict=False)]
        parts = Parts(places=np.array(places, dtype=np.int64), weights=np.array(weights) / sum(weights))
        self.formula = Formula("BLEU" if text == "bleu" else text, int(starts[-1]), parts)
        signatures = [kind.signature for kind in kinds]
        self.signature = signatures[0] if len(kinds) == 1 else f"{text}({' + '.join(signatures)})"

    def counter(self, references: Sequence[str]) -> Counter:
        """Count the references of a sentence once for all its candidates; missing ones do not count."""
        known = without_missing(references)
        counters = [kind.counter(known) for kind in self._kinds]
        return lambda text: [value for counter in counters for value in counter(text)]


def _split(named: str) -> list[str]:
    """Split `bleu+chrf++` at the plus signs that part metrics."""
    names = [name.replace("##", "++") for name in named.replace("chrf++", "chrf##").split("+")]
    for name in names:
        if name not in METRICS:
            raise InputError(f"unknown metric {shown(name)}{nearest(name, list(METRICS))}")
    return names


def _weights(numbers: str, text: str) -> list[float]:
    weights = []
    for part in numbers.split(","):
        weight = number(part)
        if weight is None:
            raise InputError(f"metric {shown(text)}: {no_number(part)} behind the colon")
        weights.append(weight)
    if not (min(weights) >= 0 and sum(weights) > 0):
        raise InputError(f"metric {shown(text)}: expected weights that are not negative, and one above 0")
    return weights
