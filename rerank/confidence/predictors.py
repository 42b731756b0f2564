"""Predictors of confidence: what a scored list and its weights say of a choice, and of its change from Moses' own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.formulas import ORDER, bleu, count_ngrams
from moses_io.files.text import tokens
from moses_io.nbest import SentenceList


@dataclass(frozen=True)
class Wording:
    """The G different n-grams of a text, beside those of the T texts of its list.

    Attributes:
        counts: (G,) how often it has each.
        held: (T, G) how often each text has each.
        by_length: (G, ORDER) 1 at the length of each.
        sizes: (ORDER,) all of its n-grams, by their length.
        lengths: (T,) words of each text.
    """

    counts: Array
    held: Array
    by_length: Array
    sizes: Array
    lengths: Array

    def likeness(self, shares: Array) -> Array:
        """(S,) smoothed sentence BLEU against what shares (S, T) expect; see `features.kinds.consensus`."""
        if not self.sizes[0]:
            return np.zeros(len(shares))
        matches = np.minimum(self.counts, shares @ self.held) @ self.by_length  # (S, ORDER)
        pairs = np.stack([matches, np.broadcast_to(self.sizes, matches.shape)], axis=2)  # (S, ORDER, 2)
        rows = np.column_stack([pairs.reshape(len(shares), -1), shares @ self.lengths])  # (S, 2 ORDER + 1)
        return np.array([bleu(row, True) for row in rows])

    def posteriors(self, shares: Array) -> list[float]:
        """Return, for n-grams of each length, the mean probability by shares (T,) that a text has them."""
        sums = (self.counts * (shares @ (self.held > 0))) @ self.by_length  # (ORDER,)
        means: list[float] = (sums / np.maximum(self.sizes, 1)).tolist()
        return means


class Texts:
    """The T different texts of the N candidates of a sentence.

    Attributes:
        of: (N,) which of them a candidate has, from 0 as they come.
        words: of each.
    """

    def __init__(self, sentence_list: SentenceList) -> None:
        places: dict[tuple[str, ...], int] = {}
        own = [places.setdefault(tuple(tokens(each.text)), len(places)) for each in sentence_list.hypotheses]
        self.of, self.words = np.array(own), list(places)  # (N,)
        self._ngrams = [count_ngrams(words) for words in places]

    def shares(self, exponents: Array) -> Array:
        """(S, T) probabilities of the texts by S opinions, each of which has an exponent for each candidate, (S, N)."""
        weighed = np.exp(exponents - exponents.max(axis=1, keepdims=True))  # (S, N)
        same = self.of[:, None] == np.arange(len(self.words))  # (N, T)
        shares: Array = weighed @ same / weighed.sum(axis=1, keepdims=True)  # (S, T)
        return shares

    def wording(self, text: int) -> Wording:
        """Return the n-grams of a text beside those of all."""
        return self._beside(text, range(len(self.words)))

    def likeness(self, some: Sequence[int]) -> Array:
        """(S, S) smoothed sentence BLEU of some texts, a row each, against each of them."""
        rows = {text: self._beside(text, some).likeness(np.eye(len(some))) for text in set(some)}  # (S,) each
        return np.array([rows[text] for text in some])

    def _beside(self, text: int, others: Sequence[int]) -> Wording:
        own = self._ngrams[text]
        held = np.array([[self._ngrams[each].get(ngram, 0) for ngram in own] for each in others])  # (T, G)
        order = np.array([len(ngram) for ngram in own], dtype=np.int64)  # (G,)
        return Wording(
            counts=np.array([*own.values()], dtype=np.float64),
            held=held.astype(np.float64),
            by_length=(order[:, None] == np.arange(1, ORDER + 1)).astype(np.float64),
            sizes=np.maximum(len(self.words[text]) - np.arange(ORDER), 0),
            lengths=np.array([len(self.words[each]) for each in others]),
        )


SCALES = (1, 4)
"""Of the totals, in units of their spread, whose exponentials are the candidates' shares of the probability.

Single features, in units of theirs, are taken by the last one.
"""


@dataclass(frozen=True)
class FeatureUnits:
    """Dense features (name, number of values), and of each value the standard deviation within sentences, (D,).

    Moses' start weights have none for those that were `added`.
    """

    dense: tuple[tuple[str, int], ...]
    spread: Array
    added: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The name of each value; of several values of a feature with their number, from 1."""
        return [
            f"{name}:{number}" if count > 1 else name for name, count in self.dense for number in range(1, count + 1)
        ]

    @property
    def of_added(self) -> list[int]:
        """The places of the values of features that were added."""
        owners = [name for name, count in self.dense for _ in range(count)]
        return [place for place, name in enumerate(owners) if name in self.added]

    def values(self, sentence_list: SentenceList) -> Array:
        """(N, D) dense features in this order."""
        rows = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
        return np.array([[value for name, _ in self.dense for value in row[name]] for row in rows])  # (N, D)


class Predictors(NamedTuple):
    """Numbers by their names: of the `choice`, and of the `change` from Moses' choice.

    `change` is empty where the texts agree, and where Moses' output is not among the candidates.
    """

    choice: dict[str, float]
    change: dict[str, float]


def predictors(sentence_list: SentenceList, totals: Array, units: FeatureUnits) -> Predictors:
    """Return the predictors of a sentence.

    The order of the candidates makes no difference, but for ties.

    Args:
        sentence_list: N candidates, with the features of `units`.
        totals: (N,) scores by the linear model, in units of their spread within sentences.
        units: of the features.
    """
    choice, decoded = int(np.argmax(totals)), sentence_list.moses_choice
    texts, values = Texts(sentence_list), units.values(sentence_list)  # (N, D)
    text = int(texts.of[choice])
    words, wording = texts.words[text], texts.wording(text)
    scaled = values / np.where(units.spread > 0, units.spread, 1)  # (N, D)
    shares = texts.shares(
        np.array([*(scale * totals for scale in SCALES), *(SCALES[-1] * scaled.T)])
    )  # (scales + D, T)
    likeness = wording.likeness(shares)  # (scales + D,)
    of_choice = _of_totals(sentence_list, totals, choice, texts.of)
    of_choice |= _of_words(words, float(totals[choice]), sentence_list.hypotheses[choice].total or 0.0)
    for scale, opinion in zip(SCALES, shares, strict=False):
        of_choice |= _of_opinion(wording, opinion, float(opinion[text]), f"scale {scale}")
    by = [*(f"scale {scale}" for scale in SCALES), *units.names]
    of_choice |= {f"likeness to the list, {name}": value for name, value in zip(by, likeness.tolist(), strict=True)}
    of_choice |= _of_features(units, values, choice, max(1, len(words)))
    of_choice["likeness of favourites"] = _favourites_agree(texts, values[:, units.of_added])
    before = None if decoded is None else int(texts.of[decoded])
    if before is None or before == text:
        return Predictors(of_choice, {})
    gained = (likeness - texts.wording(before).likeness(shares)).tolist()  # (scales + D,)
    of_change = {"total over Moses' choice": float(totals[choice] - totals[decoded])}
    for scale, gain in zip(SCALES, gained, strict=False):
        of_change[f"likeness to the list over Moses' choice, scale {scale}"] = gain
    for name, gain in zip(units.names, (scaled[choice] - scaled[decoded]).tolist(), strict=True):
        of_change[f"{name} over Moses' choice"] = gain
    return Predictors(of_choice, of_change)


def _of_totals(sentence_list: SentenceList, totals: Array, choice: int, texts: Integers) -> dict[str, float]:
    """How far the choice stands out among candidates that have these texts, (N,)."""
    others = totals[texts != texts[choice]]  # (others,)
    moses = np.array([-np.inf if each.total is None else each.total for each in sentence_list.hypotheses])  # (N,)
    return {
        "lead": float(np.log1p(totals[choice] - others.max())) if len(others) else 0.0,
        "above the mean": float(totals[choice] - totals.mean()),
        "place by Moses": float(np.log1p((moses > moses[choice]).sum())),
        "texts": float(np.log1p(texts.max())),
    }


def _of_words(words: Sequence[str], total: float, moses: float) -> dict[str, float]:
    """How long it is, and what its words are, by its total and that of Moses, too."""
    length = max(1, len(words))
    return {
        "length": float(np.log1p(length)),
        "shortness": 1 / length,
        "letters per word": sum(map(len, words)) / length,
        "share of different words": len(set(words)) / length,
        "total per word": total / length,
        "Moses' total": moses,
        "Moses' total per word": moses / length,
    }


def _of_opinion(wording: Wording, shares: Array, probability: float, scale: str) -> dict[str, float]:
    """How far shares (T,) are of one mind, and agree with a text, which has this probability."""
    likely = shares[shares > 0]  # (likely texts,)
    values = {"probability": probability, "entropy": float(-(likely * np.log(likely)).sum())}
    values |= {f"posterior of {n}-grams": value for n, value in enumerate(wording.posteriors(shares), start=1)}
    return {f"{name}, {scale}": value for name, value in values.items()}


def _of_features(units: FeatureUnits, values: Array, choice: int, length: int) -> dict[str, float]:
    """Features (N, D) of the choice as they are, for such as a worst word, and per word, for sums over words.

    The highest value of the list is told per word of the choice, too.
    """
    own, best = values[choice].tolist(), values.max(axis=0).tolist()  # (D,), (D,)
    of_choice: dict[str, float] = {}
    for name, value, highest in zip(units.names, own, best, strict=True):
        of_choice |= {f"{name} of the choice": value, f"{name} per word": value / length}
        of_choice |= {f"{name} is the best": float(value >= highest), f"highest {name} per word": highest / length}
    return of_choice


def _favourites_agree(texts: Texts, values: Array) -> float:
    """Return how like each other the texts are which values (N, A) of added features rank first; 1 for fewer than two.

    A value that ranks several texts first has no favourite. The likeness is the mean over pairs of values, of smoothed
    sentence BLEU of either favourite against the other.
    """
    ranked = [np.unique(texts.of[first]).tolist() for first in (values == values.max(axis=0)).T]
    favourites = [own[0] for own in ranked if len(own) == 1]
    if len(favourites) < 2:
        return 1.0
    likeness = texts.likeness(favourites)  # (favourites, favourites)
    return float(likeness[~np.eye(len(favourites), dtype=bool)].mean())
