"""Metrics as statistics that add: of a candidate → summed over a corpus → a score, higher is better, 0 … 1.

BLEU counts as Moses' BleuScorer does (see `rerank.metrics.bleu`); the statistics of chrF, chrF++ and TER are
sacreBLEU's own. A sum of metrics such as `bleu+chrf:0.7,0.3` has the statistics of both, one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from moses_io.errors import InputError, nearest
from moses_io.text import tokens
from rerank.candidates import Array, Integers
from rerank.metrics.bleu import SIGNATURE as BLEU_SIGNATURE
from rerank.metrics.bleu import STATISTICS as BLEU_STATISTICS
from rerank.metrics.bleu import SentenceReferences
from rerank.metrics.kernels import BLEU, CHRF, TER, values

Counter = Callable[[str], list[float]]
"""From the text of a candidate to its statistics."""


@dataclass(frozen=True)
class _Kind:
    """A row of the table: which formula, how many statistics, their signature, and how references are counted."""

    formula: int
    size: int
    signature: str
    counter: Callable[[Sequence[str]], Counter]


def _bleu(length: str) -> Callable[[Sequence[str]], Counter]:
    def counter(references: Sequence[str]) -> Counter:
        counted = SentenceReferences([tokens(reference) for reference in references], length)
        return lambda text: [float(value) for value in counted.statistics(tokens(text))]

    return counter


def _chrf(word_order: int) -> Callable[[Sequence[str]], Counter]:
    def counter(references: Sequence[str]) -> Counter:
        import sacrebleu.metrics.chrf

        scorer = sacrebleu.metrics.chrf.CHRF(word_order=word_order)
        known = scorer._extract_reference_info([scorer._preprocess_segment(reference) for reference in references])
        return lambda text: list(scorer._compute_segment_statistics(scorer._preprocess_segment(text), known))

    return counter


def _ter(references: Sequence[str]) -> Counter:
    import sacrebleu.metrics.ter

    scorer = sacrebleu.metrics.ter.TER()
    known = scorer._extract_reference_info(references)
    return lambda text: list(scorer._compute_segment_statistics(scorer._preprocess_segment(text), known))


METRICS = {
    "bleu": _Kind(BLEU, BLEU_STATISTICS, BLEU_SIGNATURE.format("closest"), _bleu("closest")),
    "bleu-shortest": _Kind(BLEU, BLEU_STATISTICS, BLEU_SIGNATURE.format("shortest"), _bleu("shortest")),
    "bleu-average": _Kind(BLEU, BLEU_STATISTICS, BLEU_SIGNATURE.format("average"), _bleu("average")),
    "chrf": _Kind(CHRF, 18, "chrF2|nc:6|nw:0|space:no", _chrf(0)),
    "chrf++": _Kind(CHRF, 24, "chrF2++|nc:6|nw:2|space:no", _chrf(2)),
    "ter": _Kind(TER, 2, "1-TER|tok:none|case:lc", _ter),
}


class Metric:
    """A metric, or a weighted sum of several: `bleu`, `chrf`, `chrf++`, `ter`, `bleu+chrf:0.7,0.3`.

    Attributes:
        name: what it is called in messages.
        size: number of statistics.
        parts: (metrics, 3) formula, first statistic and number of statistics of each.
        weights: (metrics,) of each, which sum to 1.
        signature: what was counted.

    Raises:
        InputError: an unknown metric, or weights that do not fit.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InputError(f"metric: expected a name such as 'bleu', found {text!r}")
        named, colon, numbers = text.partition(":")
        names = _split(named)
        weights = _weights(numbers, text) if colon else [1 / len(names)] * len(names)
        if len(weights) != len(names):
            raise InputError(f"metric {text!r}: expected {len(names)} weights, found {len(weights)}")
        kinds = [METRICS[name] for name in names]
        starts = np.cumsum([0, *(kind.size for kind in kinds)])
        self.name = "BLEU" if text == "bleu" else text
        self.size = int(starts[-1])
        rows = [[kind.formula, start, kind.size] for kind, start in zip(kinds, starts, strict=False)]
        self.parts: Integers = np.array(rows, dtype=np.int64)
        self.weights: Array = np.array(weights) / sum(weights)
        self._kinds = kinds
        told = [kind.signature for kind in kinds]
        self.signature = told[0] if len(told) == 1 else f"{text}({' + '.join(told)})"

    def counter(self, references: Sequence[str]) -> Counter:
        """Count the references of a sentence once for all its candidates."""
        counters = [kind.counter(references) for kind in self._kinds]
        return lambda text: [value for counter in counters for value in counter(text)]

    def score(self, statistics: Array) -> Array:
        """Return the scores (…) of summed statistics (…, size)."""
        return self._values(statistics, False)

    def smoothed(self, statistics: Array) -> Array:
        """Return the scores (…) of the statistics (…, size) of single sentences; BLEU is Moses' BLEU+1."""
        return self._values(statistics, True)

    def _values(self, statistics: Array, smooth: bool) -> Array:
        rows = np.ascontiguousarray(statistics, dtype=np.float64).reshape(-1, self.size)
        result: Array = values(rows, self.parts, self.weights, smooth).reshape(statistics.shape[:-1])
        return result


def _split(named: str) -> list[str]:
    """Split `bleu+chrf++` at the plus signs that part metrics."""
    names = named.replace("chrf++", "chrf##").split("+")
    names = [name.replace("##", "++") for name in names]
    for name in names:
        if name not in METRICS:
            raise InputError(f"unknown metric {name!r}{nearest(name, list(METRICS))}")
    return names


def _weights(numbers: str, text: str) -> list[float]:
    try:
        weights = [float(number) for number in numbers.split(",")]
    except ValueError:
        raise InputError(f"metric {text!r}: expected numbers behind the colon") from None
    if not (all(0 <= weight < float("inf") for weight in weights) and sum(weights) > 0):
        raise InputError(f"metric {text!r}: expected weights that are not negative, and one above 0")
    return weights
