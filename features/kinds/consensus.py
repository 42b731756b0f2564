"""What the candidates of a sentence say together: each weighs exp(scale · Moses' total), normalized over the list."""

import collections
import math
from collections.abc import Iterable, Sequence

import numpy as np

from features.feature import Array, Resources, Sentence
from features.ngrams import ORDER, count_ngrams
from moses_io.errors import InputError
from moses_io.text import number

LETTERS = 6
SCALE = 1.0
"""Of the totals, where none is named; docs/features.md has a grid on the sample's dev list."""


class Consensus:
    """One value: smoothed sentence BLEU, or chrF, against the statistics that the list expects of a reference.

    A candidate's n-grams are clipped at their expected counts and the reference length is the expected one (as DeNero
    et al. 2009), so that the cost is linear in the list and not in its pairs.

    Raises:
        InputError: neither `bleu` nor `chrf`, or no number behind the comma.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._metric, _, scale = argument.partition(",")
        self._scale = scale_of(scale, f"consensus:{argument}")
        if self._metric not in ("bleu", "chrf"):
            raise InputError(f"feature 'consensus:{argument}': expected consensus:bleu or consensus:chrf")
        self.signature = f"consensus|{self._metric}|scale:{self._scale:g}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, 1)."""
        return np.array([[value] for sentence in sentences for value in self._values(sentence)])

    def _values(self, sentence: Sentence) -> list[float]:
        texts = [
            hypothesis if self._metric == "bleu" else tuple("".join(hypothesis)) for hypothesis in sentence.hypotheses
        ]
        order = ORDER if self._metric == "bleu" else LETTERS
        counts = [count_ngrams(text, order) for text in texts]
        weights = posterior(sentence, self._scale)
        expected: dict[tuple[str, ...], float] = collections.defaultdict(float)
        for weight, own in zip(weights, counts, strict=True):
            for ngram, count in own.items():
                expected[ngram] += weight * count
        totals = [0.0] * order
        for ngram, value in expected.items():
            totals[len(ngram) - 1] += value
        score = _bleu if self._metric == "bleu" else _chrf
        length = float(np.dot(weights, [len(text) for text in texts]))
        return [score(own, expected, totals, len(text), length) for own, text in zip(counts, texts, strict=True)]


class Posteriors:
    """A value for each order 1 … 4: the sum over a candidate's n-grams of the probability that the list gives them.

    (Zens & Ney 2006; an n-gram counts once for each time that it stands there.)
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._scale = scale_of(argument, f"posteriors:{argument}")
        self.signature = f"posteriors|scale:{self._scale:g}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, 4)."""
        return np.array([row for sentence in sentences for row in self._rows(sentence)])

    def _rows(self, sentence: Sentence) -> list[list[float]]:
        counts = [count_ngrams(hypothesis) for hypothesis in sentence.hypotheses]
        known: dict[tuple[str, ...], float] = collections.defaultdict(float)
        for weight, own in zip(posterior(sentence, self._scale), counts, strict=True):
            for ngram in own:
                known[ngram] += weight
        rows = []
        for own in counts:
            row = [0.0] * ORDER
            for ngram, count in own.items():
                row[len(ngram) - 1] += count * known[ngram]
            rows.append(row)
        return rows


def scale_of(text: str, feature: str) -> float:
    """Read a scale; the default where there is none."""
    value = number(text) if text else SCALE
    if value is None or value < 0:
        raise InputError(f"feature '{feature}': expected a scale from 0, found {text!r}")
    return value


def posterior(sentence: Sentence, scale: float) -> list[float]:
    """(candidates,) probability of each by its total.

    Raises:
        InputError: a line without a total.
    """
    totals = [line.total for line in sentence.lines]
    known = [total for total in totals if total is not None]
    if len(known) != len(sentence.hypotheses):
        raise InputError(f"sentence {sentence.sentence}: a candidate has no total, which features of the list need")
    weighed = np.exp(scale * (np.array(known) - max(known)))
    shares: list[float] = (weighed / weighed.sum()).tolist()
    return shares


def _matches(own: dict[tuple[str, ...], int], expected: dict[tuple[str, ...], float], order: int) -> list[float]:
    """Return the n-grams of each order that a candidate shares with what is expected, clipped at its counts."""
    matches = [0.0] * order
    for ngram, count in own.items():
        matches[len(ngram) - 1] += min(count, expected[ngram])
    return matches


def _bleu(
    own: dict[tuple[str, ...], int],
    expected: dict[tuple[str, ...], float],
    _: Iterable[float],
    size: int,
    length: float,
) -> float:
    matches = _matches(own, expected, ORDER)
    logs = (math.log((match + 1) / (max(0, size - place) + 1)) for place, match in enumerate(matches))
    return math.exp(sum(logs) / ORDER + min(0.0, 1 - length / size)) if size else 0.0


def _chrf(
    own: dict[tuple[str, ...], int],
    expected: dict[tuple[str, ...], float],
    totals: Sequence[float],
    size: int,
    _: float,
) -> float:
    matches = _matches(own, expected, LETTERS)
    rates = [
        (match / (size - place), match / total)
        for place, (match, total) in enumerate(zip(matches, totals, strict=True))
        if size > place and total > 0
    ]
    if not rates:
        return 0.0
    precision, recall = (sum(part) / len(rates) for part in zip(*rates, strict=True))
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0
