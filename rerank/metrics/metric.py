"""Metrics for tuning: statistics per candidate → sum over the corpus → score by a formula.

BLEU follows Moses' BleuScorer:

* Tokens are the maximal runs of characters without an ASCII space.
* The n-gram order is 4. There is no smoothing: the score is 0 if an order has no match.
* The reference length is the closest one (the shorter of two equally close ones), the shortest one, or the average,
  rounded down.
* The statistics of a candidate are `match1 total1 … match4 total4 reflength`, as in Moses' scores.dat.

sacreBLEU computes the statistics of chrF, chrF3 (beta 3) and chrF++. TER has sacreBLEU's statistics, computed by
`rerank.metrics.edits`. A weighted sum such as `bleu+chrf:0.7,0.3` concatenates the statistics of its metrics.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from features.formulas import ORDER, Ngrams, count_ngrams
from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.text import no_number, number, tokens, without_missing
from rerank.metrics.formula import BLEU, CHRF, CHRF3, TER, Formula, Parts

Counter = Callable[[str], list[float]]
"""Maps the text of a candidate to its statistics."""

BLEU_SIZE = 2 * ORDER + 1
"""Number of statistics of BLEU."""


class SentenceReferences:
    """N-gram counts and lengths of the references of a sentence, computed once for all its candidates."""

    def __init__(self, references: Sequence[Sequence[str]], length: str = "closest") -> None:
        lengths = [len(reference) for reference in references]
        self._lengths = {"shortest": [min(lengths)], "average": [sum(lengths) // len(lengths)]}.get(length, lengths)
        self._max_counts = Ngrams()
        for reference in references:
            self._max_counts |= count_ngrams(reference)

    def statistics(self, hypothesis: Sequence[str]) -> list[float]:
        """Return the BLEU statistics of a hypothesis, given as tokens."""
        length = len(hypothesis)
        counts, max_counts = count_ngrams(hypothesis), self._max_counts
        matches = [0.0] * ORDER
        for ngram in counts.keys() & max_counts.keys():
            matches[len(ngram) - 1] += min(counts[ngram], max_counts[ngram])
        totals = [max(0, length - order) for order in range(ORDER)]
        closest = min(self._lengths, key=lambda reference: (abs(reference - length), reference))
        return [*(value for pair in zip(matches, totals, strict=True) for value in pair), closest]


@dataclass(frozen=True)
class MetricKind:
    """A row of the table of metrics.

    Attributes:
        code: code of the formula.
        size: number of statistics.
        signature: signature of the metric.
        counter: maps the references of a sentence to a function that counts the statistics of a candidate.
    """

    code: int
    size: int
    signature: str
    counter: Callable[[Sequence[str]], Counter]

    @property
    def name(self) -> str:
        """Name in messages and reports, such as chrF2++. Higher is better for all, so TER is 1-TER."""
        return self.signature.partition("|")[0]


def _bleu(length: str) -> MetricKind:
    def counter(references: Sequence[str]) -> Counter:
        counted = SentenceReferences([tokens(reference) for reference in references], length)
        return lambda text: counted.statistics(tokens(text))

    return MetricKind(BLEU, BLEU_SIZE, f"BLEU|tok:space|smooth:none|reflen:{length}", counter)


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
    """A metric such as `bleu`, `chrf++` or `ter`, or a weighted sum of metrics such as `bleu+chrf:0.7,0.3`.

    Without weights, the metrics of a sum have equal weights.

    Attributes:
        formula: maps summed statistics to a score.
        signature: signature of the metric.

    Raises:
        InputError: a metric is unknown, the number of weights differs from the number of metrics, a weight is negative
            or not a number, or all weights are 0.
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
        layout = [[kind.code, start, kind.size] for kind, start in zip(kinds, starts, strict=False)]
        parts = Parts(layout=np.array(layout, dtype=np.int64), weights=np.array(weights) / sum(weights))
        name = kinds[0].name if len(kinds) == 1 else text
        self.formula = Formula(name, int(starts[-1]), parts)
        signatures = [kind.signature for kind in kinds]
        self.signature = signatures[0] if len(kinds) == 1 else f"{text}({' + '.join(signatures)})"

    def counter(self, references: Sequence[str]) -> Counter:
        """Return a function that maps the text of a candidate to its statistics against these references.

        Missing references (blank lines in one of several references) are ignored.
        """
        known = [line if line.strip() else "" for line in without_missing(references)]  # a blank line has no tokens
        counters = [kind.counter(known) for kind in self._kinds]
        return lambda text: [value for counter in counters for value in counter(text)]


def _split(named: str) -> list[str]:
    """Split `bleu+chrf++` at the plus signs between metrics."""
    names = re.split(r"\+(?=[^+])", named)
    for name in names:
        if name not in METRICS:
            raise InputError(f"unknown metric {shown(name)}{nearest(name, list(METRICS))}")
    return names


def _weights(numbers: str, text: str) -> list[float]:
    weights = []
    for part in numbers.split(","):
        weight = number(part)
        if weight is None:
            raise InputError(f"metric {shown(text)}: weights: {no_number(part)}")
        weights.append(weight)
    if not (min(weights) >= 0 and sum(weights) > 0):
        raise InputError(f"metric {shown(text)}: expected weights that are not negative, and one above 0")
    return weights
