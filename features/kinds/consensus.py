"""What the candidates of a sentence say together: each weighs exp(scale · Moses' total), normalized over the list."""

import collections
import math
from collections.abc import Mapping, Sequence

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence
from features.formulas import bleu, chrf
from features.ngrams import ORDER, Ngram, Ngrams, by_length, count_ngrams
from moses_io.errors import InputError, shown
from moses_io.text import number

LETTERS = 6
BETA = 2
"""Of chrF, sacreBLEU's: recall weighs twice as much as precision."""
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
        letters = self._metric == "chrf"
        order = LETTERS if letters else ORDER
        texts = [tuple("".join(hypothesis)) if letters else hypothesis for hypothesis in sentence.hypotheses]
        counts = [count_ngrams(text, order) for text in texts]
        weights = posterior(sentence, self._scale)
        expected = expected_counts(counts, weights)
        totals = by_length(expected.items(), order)
        length = float(np.dot(weights, [len(text) for text in texts]))
        rows = []
        for own, text in zip(counts, texts, strict=True):
            matches = expected_matches(own, expected, order)
            sizes = [max(0, len(text) - place) for place in range(order)]
            orders = zip(sizes, totals, matches, strict=True) if letters else zip(matches, sizes, strict=True)
            rows.append([value for statistics in orders for value in statistics] + ([] if letters else [length]))
        statistics = zip(np.array(rows), texts, strict=True)  # (candidates, 3 order) or (candidates, 2 order + 1)
        return [(chrf(row, BETA) if letters else bleu(row, True)) if text else 0.0 for row, text in statistics]


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
        known = posteriors_of_ngrams(counts, posterior(sentence, self._scale))
        return [by_length((ngram, count * known[ngram]) for ngram, count in own.items()) for own in counts]


def expected_counts(counts: Sequence[Ngrams], shares: Sequence[float]) -> dict[Ngram, float]:
    """Return how often each n-gram is expected by candidates that have these shares of the probability."""
    expected: dict[Ngram, float] = collections.defaultdict(float)
    for share, own in zip(shares, counts, strict=True):
        for ngram, count in own.items():
            expected[ngram] += share * count
    return expected


def expected_matches(own: Ngrams, expected: Mapping[Ngram, float], order: int = ORDER) -> list[float]:
    """Return the n-grams of a candidate, clipped at their expected counts, by their length."""
    return by_length(((ngram, min(count, expected[ngram])) for ngram, count in own.items()), order)


def posteriors_of_ngrams(counts: Sequence[Ngrams], shares: Sequence[float]) -> dict[Ngram, float]:
    """Return the probability that a candidate has an n-gram at all, by the shares of the candidates."""
    known: dict[Ngram, float] = collections.defaultdict(float)
    for share, own in zip(shares, counts, strict=True):
        for ngram in own:
            known[ngram] += share
    return known


def scale_of(text: str, feature: str) -> float:
    """Read a scale; the default where there is none."""
    value = number(text) if text else SCALE
    if value is None or not 0 <= value < math.inf:
        raise InputError(f"feature '{feature}': expected a scale from 0, found {shown(text)}")
    return value


def posterior(sentence: Sentence, scale: float) -> list[float]:
    """(candidates,) probability of each by its total.

    Raises:
        InputError: a line without a total.
    """
    totals = []
    for line in sentence.lines:
        total = line.total
        if total is None:
            raise InputError(f"{sentence.place(line)}: no total in the fourth field, which features of the list need")
        totals.append(total)
    weighed = np.exp(scale * (np.array(totals) - max(totals)))
    shares: list[float] = (weighed / weighed.sum()).tolist()
    return shares
