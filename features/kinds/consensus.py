"""Consensus features: the similarity of a candidate to the n-best list, as in minimum Bayes risk decoding.

A candidate has the posterior probability exp(scale · Moses' total), normalized over the list.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from features.feature import Resources, Sentence
from features.formulas import ORDER, bleu, chrf
from moses_io.files.errors import InputError, shown
from moses_io.files.text import number
from moses_io.hypothesis import no_total

CHARACTER_ORDER = 6
"""Maximum order of the character n-grams of chrF."""
BETA = 2
"""Beta of chrF, as in sacreBLEU: recall weighs twice as much as precision."""
SCALE = 1.0
"""Default factor of the totals. docs/lab/choices.md compares several scales."""


class Consensus:
    """One value: smoothed sentence BLEU, or chrF, against the expected n-gram counts of the list.

    The expectation is over the posterior of the candidates. The n-grams of a candidate are clipped at their expected
    counts, and the reference length is the expected length (as DeNero et al. 2009). The cost is therefore linear in the
    number of candidates, not quadratic. An empty candidate has the value 0.

    Raises:
        InputError: a metric other than `bleu` and `chrf`, or an invalid scale after the comma.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._metric, _, scale = argument.partition(",")
        self._scale = scale_of(scale, f"consensus:{argument}")
        if self._metric not in ("bleu", "chrf"):
            raise InputError(f"feature 'consensus:{argument}': expected consensus:bleu or consensus:chrf")
        self.signature = f"consensus|{self._metric}|scale:{self._scale:g}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, 1)."""
        return np.array([[value] for sentence in sentences for value in self._values(sentence)])

    def _values(self, sentence: Sentence) -> list[float]:
        characters = self._metric == "chrf"
        texts = ["".join(hypothesis) if characters else hypothesis for hypothesis in sentence.hypotheses]
        weights = posterior(sentence, self._scale)  # (N,)
        lengths = np.array([len(text) for text in texts])  # (N,)
        columns = []  # each (N,)
        for order, own in enumerate(counts_of_ngrams(texts, CHARACTER_ORDER if characters else ORDER)):
            expected = np.bincount(own.ngrams, weights[own.candidates] * own.counts, own.size)  # (n-grams,)
            matches = np.bincount(own.candidates, np.minimum(own.counts, expected[own.ngrams]), len(texts))  # (N,)
            sizes = np.maximum(0, lengths - order)  # (N,)
            columns += [sizes, np.full(len(texts), expected.sum()), matches] if characters else [matches, sizes]
        columns += [] if characters else [np.full(len(texts), weights @ lengths)]
        statistics = zip(np.column_stack(columns), texts, strict=True)  # (N, 3 order) or (N, 2 order + 1)
        return [(chrf(row, BETA) if characters else bleu(row, True)) if text else 0.0 for row, text in statistics]


class Posteriors:
    """Four values: for each order 1 … 4, the sum of the posterior probabilities of a candidate's n-grams.

    The posterior of an n-gram is the sum of the posteriors of the candidates that contain it (Zens & Ney 2006). An
    n-gram that occurs several times in a candidate counts each time.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._scale = scale_of(argument, f"posteriors:{argument}")
        self.signature = f"posteriors|scale:{self._scale:g}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, 4)."""
        return np.concatenate([self._rows(sentence) for sentence in sentences])  # (candidates of all sentences, 4)

    def _rows(self, sentence: Sentence) -> Array:
        weights, columns = posterior(sentence, self._scale), []  # (N,), each (N,)
        for own in counts_of_ngrams(sentence.hypotheses, ORDER):
            known = np.bincount(own.ngrams, weights[own.candidates], own.size)  # (n-grams,)
            columns.append(np.bincount(own.candidates, own.counts * known[own.ngrams], len(weights)))
        return np.column_stack(columns).astype(np.float64)  # (N, 4); bincount of empty texts returns integers


@dataclass(frozen=True)
class Counts:
    """Counts of the n-grams of one length in several candidates, in sparse form. N-grams are numbered from 0.

    Attributes:
        candidates: (pairs,) index of a candidate in its list.
        ngrams: (pairs,) id of an n-gram in this candidate.
        counts: (pairs,) how often it occurs.
        size: number of distinct n-grams.
    """

    candidates: Integers
    ngrams: Integers
    counts: Integers
    size: int


def counts_of_ngrams(texts: Sequence[Sequence[str]], order: int) -> Iterator[Counts]:
    """Yield the counts of the n-grams of length 1, 2, … `order`.

    Args:
        texts: sequences of tokens, or strings for n-grams of characters.
        order: maximum length.
    """
    numbers: dict[str, int] = {}
    tokens = np.array(
        [numbers.setdefault(token, len(numbers)) for text in texts for token in text], np.int64
    )  # (tokens,)
    lengths = [len(text) for text in texts]
    owners, starts, ngrams = np.repeat(np.arange(len(texts)), lengths), np.arange(len(tokens)), tokens  # (tokens,) each
    left = np.cumsum(lengths)[owners] - starts  # (tokens,) tokens from this one to the end of its text
    for length in range(1, order + 1):
        whole = left[starts] >= length
        starts, ngrams = starts[whole], ngrams[whole]  # (n-grams of all texts,) each
        # An n-gram is its prefix and its last token. Renumbering from 0 keeps the integer keys small.
        if length > 1:
            ngrams = np.unique(ngrams * len(numbers) + tokens[starts + length - 1], return_inverse=True)[1]
        size = int(ngrams.max(initial=-1)) + 1
        pairs, counts = np.unique(owners[starts] * size + ngrams, return_counts=True)  # (pairs,), (pairs,)
        yield Counts(pairs // max(size, 1), pairs % max(size, 1), counts, size)


def scale_of(text: str, feature: str) -> float:
    """Parse a scale, by default `SCALE`, or raise `InputError` if it is not a number >= 0."""
    value = number(text) if text else SCALE
    if value is None or value < 0:
        raise InputError(f"feature '{feature}': expected a scale from 0, found {shown(text)}")
    return value


def posterior(sentence: Sentence, scale: float) -> Array:
    """Return the posterior probability of each candidate, (candidates,), from the totals.

    Raises:
        InputError: a line has no total.
    """
    totals = []
    for line in sentence.lines:
        total = line.total
        if total is None:
            needed = "the features consensus and posteriors need a total"
            raise InputError(f"{sentence.place(line)}: {needed}: {no_total(line)}")
        totals.append(total)
    # The maximum is subtracted so that exp does not overflow.
    weighed = np.exp(scale * (np.array(totals) - max(totals)))
    probabilities: Array = weighed / weighed.sum()  # (candidates,)
    return probabilities
