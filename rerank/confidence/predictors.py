"""Predictors of confidence: properties of a choice, and of its difference from Moses' choice.

They are computed from a scored list and the model scores of its candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.formulas import ORDER, bleu, count_ngrams
from moses_io.files.text import tokens
from moses_io.nbest import SentenceList
from moses_io.weights import names_of_values


@dataclass(frozen=True)
class NgramProfile:
    """The G different n-grams of a text, compared with T texts of its list.

    Attributes:
        counts: (G,) count of each n-gram in the text.
        text_counts: (T, G) count of each n-gram in each of the T texts.
        by_length: (G, ORDER) one-hot order of each n-gram.
        sizes: (ORDER,) number of n-grams of each order in the text, with repetitions.
        lengths: (T,) tokens of each of the T texts.
    """

    counts: Array
    text_counts: Array
    by_length: Array
    sizes: Array
    lengths: Array

    def similarity(self, probabilities: Array) -> Array:
        """(S,) smoothed sentence BLEU against the expected n-gram counts under each distribution.

        0 for a text without tokens. The feature `consensus` is computed in this way, see `features.kinds.consensus`.

        Args:
            probabilities: (S, T) S probability distributions over the texts.
        """
        if not self.sizes[0]:
            return np.zeros(len(probabilities))
        matches = np.minimum(self.counts, probabilities @ self.text_counts) @ self.by_length  # (S, ORDER)
        pairs = np.stack([matches, np.broadcast_to(self.sizes, matches.shape)], axis=2)  # (S, ORDER, 2)
        rows = np.column_stack(
            [pairs.reshape(len(probabilities), -1), probabilities @ self.lengths]
        )  # (S, 2 ORDER + 1)
        return np.array([bleu(row, True) for row in rows])

    def posteriors(self, probabilities: Array) -> list[float]:
        """Return, for each n-gram order, the mean probability that a text contains an n-gram of this text.

        The mean is over the n-grams of this text, with repetitions. It is 0 for an order without n-grams.

        Args:
            probabilities: (T,) probabilities of the texts.
        """
        sums = (self.counts * (probabilities @ (self.text_counts > 0))) @ self.by_length  # (ORDER,)
        means: list[float] = (sums / np.maximum(self.sizes, 1)).tolist()
        return means


class Texts:
    """The T different texts of the N candidates of a sentence.

    Attributes:
        indices: (N,) index of the text of each candidate. Texts are numbered from 0 in order of appearance.
        words: tokens of each text.
    """

    def __init__(self, sentence_list: SentenceList) -> None:
        numbers: dict[tuple[str, ...], int] = {}
        indices = [numbers.setdefault(tuple(tokens(each.text)), len(numbers)) for each in sentence_list.hypotheses]
        self.indices, self.words = np.array(indices), list(numbers)  # (N,)
        self._ngrams = [count_ngrams(words) for words in numbers]

    def probabilities(self, exponents: Array) -> Array:
        """(S, T) probabilities of the texts, from (S, N) exponents of the candidates.

        Each row is a softmax over the candidates. A text has the sum of the probabilities of its candidates.
        """
        exponentials = np.exp(exponents - exponents.max(axis=1, keepdims=True))  # (S, N)
        same = self.indices[:, None] == np.arange(len(self.words))  # (N, T)
        probabilities: Array = exponentials @ same / exponentials.sum(axis=1, keepdims=True)  # (S, T)
        return probabilities

    def profile(self, text: int) -> NgramProfile:
        """Return the n-grams of a text, compared with all texts."""
        return self._profile(text, range(len(self.words)))

    def similarity(self, selected: Sequence[int]) -> Array:
        """(S, S) smoothed sentence BLEU between some texts, given by their indices: row against column."""
        rows = {
            text: self._profile(text, selected).similarity(np.eye(len(selected))) for text in set(selected)
        }  # (S,) each
        return np.array([rows[text] for text in selected])

    def _profile(self, text: int, others: Sequence[int]) -> NgramProfile:
        ngrams = self._ngrams[text]
        text_counts = np.array([[self._ngrams[each].get(ngram, 0) for ngram in ngrams] for each in others])  # (T, G)
        order = np.array([len(ngram) for ngram in ngrams], dtype=np.int64)  # (G,)
        return NgramProfile(
            counts=np.array([*ngrams.values()], dtype=np.float64),
            text_counts=text_counts.astype(np.float64),
            by_length=(order[:, None] == np.arange(1, ORDER + 1)).astype(np.float64),
            sizes=np.maximum(len(self.words[text]) - np.arange(ORDER), 0),
            lengths=np.array([len(self.words[each]) for each in others]),
        )


SCALES = (1, 4)
"""Factors of the totals, which are in units of their spread, in the exponents of the probability distributions.

Each value of a feature also gives a distribution by itself: in units of its spread, with the last factor.
"""


@dataclass(frozen=True)
class FeatureUnits:
    """Dense features and their units.

    Attributes:
        dense: name and number of values of each feature. D is the sum of these numbers.
        spread: (D,) standard deviation of each value within sentences.
        added: names of the features that have no weight in Moses' initial weights.
    """

    dense: tuple[tuple[str, int], ...]
    spread: Array
    added: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Name of each of the D values, see `names_of_values`."""
        return [value_name for name, count in self.dense for value_name in names_of_values(name, count)]

    @property
    def added_indices(self) -> list[int]:
        """Indices of the values of added features."""
        owners = [name for name, count in self.dense for _ in range(count)]
        return [index for index, name in enumerate(owners) if name in self.added]

    def values(self, sentence_list: SentenceList) -> Array:
        """(N, D) dense features of the candidates, in this order."""
        rows = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
        return np.array([[value for name, _ in self.dense for value in row[name]] for row in rows])  # (N, D)


class Predictors(NamedTuple):
    """Predictors of a sentence, by name.

    Attributes:
        choice: predictors of the choice.
        change: predictors of the change from Moses' choice. Empty if the texts are equal, or if Moses' output is not
            among the candidates.
    """

    choice: dict[str, float]
    change: dict[str, float]


def predictors(sentence_list: SentenceList, totals: Array, units: FeatureUnits) -> Predictors:
    """Return the predictors of a sentence.

    The order of the candidates makes no difference, except for ties.

    Args:
        sentence_list: N candidates, with the features of `units`.
        totals: (N,) scores of the linear model, in units of their spread within sentences.
        units: units of the features.
    """
    choice, decoded = int(np.argmax(totals)), sentence_list.moses_choice
    texts, values = Texts(sentence_list), units.values(sentence_list)  # (N, D)
    text = int(texts.indices[choice])
    words, profile = texts.words[text], texts.profile(text)
    scaled = values / np.where(units.spread > 0, units.spread, 1)  # (N, D)
    probabilities = texts.probabilities(
        np.array([*(scale * totals for scale in SCALES), *(SCALES[-1] * scaled.T)])
    )  # (scales + D, T)
    similarity = profile.similarity(probabilities)  # (scales + D,)
    of_choice = _total_predictors(sentence_list, totals, choice, texts.indices)
    of_choice |= _word_predictors(words, float(totals[choice]), sentence_list.hypotheses[choice].total or 0.0)
    for scale, distribution in zip(SCALES, probabilities, strict=False):  # the first rows are of the scales
        of_choice |= _distribution_predictors(profile, distribution, float(distribution[text]), f"scale {scale}")
    by = [*(f"scale {scale}" for scale in SCALES), *units.names]
    of_choice |= {f"consensus, {name}": value for name, value in zip(by, similarity.tolist(), strict=True)}
    of_choice |= _feature_predictors(units, values, choice, max(1, len(words)))
    of_choice["similarity of top candidates"] = _similarity_of_top_candidates(texts, values[:, units.added_indices])
    before = None if decoded is None else int(texts.indices[decoded])
    if before is None or before == text:
        return Predictors(of_choice, {})
    gained = (similarity - texts.profile(before).similarity(probabilities)).tolist()  # (scales + D,)
    of_change = {"total over Moses' choice": float(totals[choice] - totals[decoded])}
    for scale, gain in zip(SCALES, gained, strict=False):
        of_change[f"consensus over Moses' choice, scale {scale}"] = gain
    for name, gain in zip(units.names, (scaled[choice] - scaled[decoded]).tolist(), strict=True):
        of_change[f"{name} over Moses' choice"] = gain
    return Predictors(of_choice, of_change)


def _total_predictors(sentence_list: SentenceList, totals: Array, choice: int, texts: Integers) -> dict[str, float]:
    """Return how far the choice stands out from the other candidates. `texts` (N,) are the indices of their texts."""
    others = totals[texts != texts[choice]]  # (others,)
    moses = np.array([-np.inf if each.total is None else each.total for each in sentence_list.hypotheses])  # (N,)
    return {
        "margin": float(np.log1p(totals[choice] - others.max())) if len(others) else 0.0,
        "above the mean": float(totals[choice] - totals.mean()),
        "rank by Moses": float(np.log1p((moses > moses[choice]).sum())),
        "distinct texts": float(np.log1p(texts.max())),
    }


def _word_predictors(words: Sequence[str], total: float, moses: float) -> dict[str, float]:
    """Return length, vocabulary and scores per token of a choice with this model score and this total of Moses."""
    length = max(1, len(words))
    return {
        "length": float(np.log1p(length)),
        "inverse length": 1 / length,
        "characters per word": sum(map(len, words)) / length,
        "type-token ratio": len(set(words)) / length,
        "total per word": total / length,
        "Moses' total": moses,
        "Moses' total per word": moses / length,
    }


def _distribution_predictors(
    profile: NgramProfile, probabilities: Array, probability: float, scale: str
) -> dict[str, float]:
    """Return how concentrated a distribution (T,) over the texts is, and how probable a text and its n-grams are."""
    likely = probabilities[probabilities > 0]  # (likely texts,)
    values = {"probability": probability, "entropy": float(-(likely * np.log(likely)).sum())}
    values |= {f"posterior of {n}-grams": value for n, value in enumerate(profile.posteriors(probabilities), start=1)}
    return {f"{name}, {scale}": value for name, value in values.items()}


def _feature_predictors(units: FeatureUnits, values: Array, choice: int, length: int) -> dict[str, float]:
    """Return features (N, D) of the choice, as predictors.

    They are used as they are, which suits features such as that of a worst word, and per token, which suits sums over
    tokens. The highest value in the list is also divided by the length of the choice.
    """
    choice_values, list_maxima = values[choice].tolist(), values.max(axis=0).tolist()  # (D,), (D,)
    of_choice: dict[str, float] = {}
    for name, value, highest in zip(units.names, choice_values, list_maxima, strict=True):
        of_choice |= {f"{name} of the choice": value, f"{name} per word": value / length}
        of_choice |= {f"{name} is the best": float(value >= highest), f"highest {name} per word": highest / length}
    return of_choice


def _similarity_of_top_candidates(texts: Texts, values: Array) -> float:
    """Return how similar the texts are that the values (N, A) of added features rank first.

    A value that ranks several texts first has no top candidate. The similarity is the smoothed sentence BLEU of one
    of them against another, averaged over all ordered pairs. It is 1 for fewer than two top candidates.
    """
    ranked = [np.unique(texts.indices[first]).tolist() for first in (values == values.max(axis=0)).T]
    top = [indices[0] for indices in ranked if len(indices) == 1]
    if len(top) < 2:
        return 1.0
    similarity = texts.similarity(top)  # (top, top)
    return float(similarity[~np.eye(len(top), dtype=bool)].mean())
