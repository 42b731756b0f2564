"""Predictors of confidence: what a scored list and its weights say of a choice, and of its change from Moses' own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from features.formulas import bleu
from features.kinds.consensus import expected_counts, expected_matches, posteriors_of_ngrams
from features.ngrams import ORDER, Ngram, Ngrams, by_length, count_ngrams
from moses_io.nbest import SentenceList
from moses_io.text import tokens

SCALES = (1, 4)
"""Of the totals, in units of their spread, whose exponentials are the candidates' shares of the probability."""


@dataclass(frozen=True)
class FeatureUnits:
    """Dense features (name, number of values), and of each value the standard deviation within sentences, (D,)."""

    dense: tuple[tuple[str, int], ...]
    spread: Array

    @property
    def names(self) -> list[str]:
        """The name of each value; of several values of a feature with their number, from 1."""
        return [
            f"{name}:{number}" if count > 1 else name for name, count in self.dense for number in range(1, count + 1)
        ]

    def values(self, candidates: SentenceList) -> Array:
        """(N, D) dense features in this order."""
        rows = [dict(hypothesis.dense) for hypothesis in candidates.hypotheses]
        return np.array([[value for name, _ in self.dense for value in row[name]] for row in rows])  # (N, D)


class Predictors(NamedTuple):
    """Numbers by their names: of the `choice`, and of the `change` from Moses' choice, none where the texts agree."""

    choice: dict[str, float]
    change: dict[str, float]


class _Text(NamedTuple):
    """One of the different texts of a list, and its n-grams."""

    words: tuple[str, ...]
    counts: Ngrams


class _Opinion(NamedTuple):
    """What T texts say together: their shares, (T,), how often n-grams are expected, and whether at all; the length."""

    shares: Array
    expected: dict[Ngram, float]
    posteriors: dict[Ngram, float]
    length: float

    @classmethod
    def of(cls, texts: Sequence[_Text], shares: Array) -> "_Opinion":
        """Weigh the texts by their shares."""
        counts, weights = [text.counts for text in texts], shares.tolist()
        length = float(np.dot(shares, [len(text.words) for text in texts]))
        return cls(shares, expected_counts(counts, weights), posteriors_of_ngrams(counts, weights), length)

    def likeness(self, text: _Text) -> float:
        """Smoothed sentence BLEU of a text against what is expected; see `features.kinds.consensus`."""
        if not text.words:
            return 0.0
        sizes = [max(0, len(text.words) - shorter) for shorter in range(ORDER)]
        pairs = zip(expected_matches(text.counts, self.expected), sizes, strict=True)
        return float(bleu(np.array([*(value for pair in pairs for value in pair), self.length]), True))


def predictors(candidates: SentenceList, totals: Array, units: FeatureUnits) -> Predictors:
    """Return the predictors of a sentence.

    The order of the candidates makes no difference, but for ties.

    Args:
        candidates: N of them, with the features of `units`.
        totals: (N,) scores by the linear model, in units of their spread within sentences.
        units: of the features.
    """
    choice, decoded = int(np.argmax(totals)), candidates.decoded
    places: dict[tuple[str, ...], int] = {}  # of the different texts
    own = [places.setdefault(tuple(tokens(each.text)), len(places)) for each in candidates.hypotheses]  # (N,)
    listed = [_Text(words, count_ngrams(words)) for words in places]  # (T,)
    text, before = own[choice], own[decoded]
    length = max(1, len(listed[text].words))
    of_choice = _of_totals(candidates, totals, choice, [place == text for place in own])
    moses = candidates.hypotheses[choice].total or 0.0
    of_choice |= {
        "texts": float(np.log(len(listed))),
        "length": float(np.log1p(length)),
        "shortness": 1 / length,
        "letters per word": sum(map(len, listed[text].words)) / length,
        "total per word": totals[choice] / length,
        "Moses' total": moses,
        "Moses' total per word": moses / length,
    }
    of_change = {"total over Moses' choice": float(totals[choice] - totals[decoded])}
    for scale in SCALES:
        opinion = _Opinion.of(listed, _summed(_shares(scale * totals), own))
        likeness = opinion.likeness(listed[text])
        of_choice |= _of_opinion(opinion, listed[text], f"scale {scale}")
        of_choice[f"probability, scale {scale}"] = float(opinion.shares[text])
        of_choice[f"likeness to the list, scale {scale}"] = likeness
        of_change[f"likeness to the list over Moses' choice, scale {scale}"] = likeness - opinion.likeness(
            listed[before]
        )
    values = units.values(candidates)  # (N, D)
    differences = (values[choice] - values[decoded]) / np.where(units.spread > 0, units.spread, 1)  # (D,)
    best = values[choice] >= values.max(axis=0)  # (D,)
    for place, name in enumerate(units.names):
        of_choice[f"{name} per word"] = values[choice, place] / length
        of_choice[f"{name} is the best"] = float(best[place])
        of_change[f"{name} over Moses' choice"] = differences[place]
    return Predictors(of_choice, of_change if text != before else {})


def _of_totals(candidates: SentenceList, totals: Array, choice: int, same: Sequence[bool]) -> dict[str, float]:
    """How far the choice stands out; `same` tells which candidates have its text."""
    others = totals[~np.array(same)]  # (others,)
    moses = np.array([-np.inf if each.total is None else each.total for each in candidates.hypotheses])  # (N,)
    return {
        "lead": float(np.log1p(totals[choice] - others.max())) if len(others) else 0.0,
        "above the mean": float(totals[choice] - totals.mean()),
        "place by Moses": float(np.log1p((moses > moses[choice]).sum())),
    }


def _of_opinion(opinion: _Opinion, own: _Text, scale: str) -> dict[str, float]:
    """How far the list is of one mind, and agrees with a text."""
    sums = by_length((ngram, count * opinion.posteriors[ngram]) for ngram, count in own.counts.items())
    shares = opinion.shares[opinion.shares > 0]  # (likely texts,)
    values = {"entropy": float(-(shares * np.log(shares)).sum())}
    values |= {f"posterior of {n}-grams": sums[n - 1] / max(1, len(own.words) - n + 1) for n in range(1, ORDER + 1)}
    return {f"{name}, {scale}": value for name, value in values.items()}


def _shares(totals: Array) -> Array:
    """(N,) probability of each candidate."""
    weighed = np.exp(totals - totals.max())  # (N,)
    shares: Array = weighed / weighed.sum()
    return shares


def _summed(shares: Array, places: Sequence[int]) -> Array:
    """(T,) the shares (N,) of the candidates that have one text, added up."""
    sums: Array = np.bincount(places, weights=shares).astype(np.float64)  # (T,)
    return sums
