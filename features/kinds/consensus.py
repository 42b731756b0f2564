"""What the candidates of a sentence say together: each weighs exp(scale · Moses' total), normalized over the list."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from features.feature import Resources, Sentence
from features.formulas import ORDER, bleu, chrf
from moses_io.files.errors import InputError, shown
from moses_io.files.text import number
from moses_io.hypothesis import no_total

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
        texts = ["".join(hypothesis) if letters else hypothesis for hypothesis in sentence.hypotheses]
        weights, lengths = posterior(sentence, self._scale), np.array([len(text) for text in texts])  # (N,), (N,)
        columns = []  # each (N,)
        for place, own in enumerate(counts_of_ngrams(texts, LETTERS if letters else ORDER)):
            expected = np.bincount(own.ngrams, weights[own.candidates] * own.counts, own.size)  # (n-grams,)
            matches = np.bincount(own.candidates, np.minimum(own.counts, expected[own.ngrams]), len(texts))  # (N,)
            sizes = np.maximum(0, lengths - place)  # (N,)
            columns += [sizes, np.full(len(texts), expected.sum()), matches] if letters else [matches, sizes]
        columns += [] if letters else [np.full(len(texts), weights @ lengths)]
        statistics = zip(np.column_stack(columns), texts, strict=True)  # (N, 3 order) or (N, 2 order + 1)
        return [(chrf(row, BETA) if letters else bleu(row, True)) if text else 0.0 for row, text in statistics]


class Posteriors:
    """A value for each order 1 … 4: the sum over a candidate's n-grams of the probability that the list gives them.

    (Zens & Ney 2006; an n-gram counts once for each time that it stands there.)
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._scale = scale_of(argument, f"posteriors:{argument}")
        self.signature = f"posteriors|scale:{self._scale:g}"

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(candidates of all sentences, 4)."""
        return np.concatenate([self._rows(sentence) for sentence in sentences])  # (candidates of all sentences, 4)

    def _rows(self, sentence: Sentence) -> Array:
        weights, columns = posterior(sentence, self._scale), []  # (N,), each (N,)
        for own in counts_of_ngrams(sentence.hypotheses, ORDER):
            known = np.bincount(own.ngrams, weights[own.candidates], own.size)  # (n-grams,)
            columns.append(np.bincount(own.candidates, own.counts * known[own.ngrams], len(weights)))
        return np.column_stack(columns).astype(np.float64)  # (N, 4); of empty texts they are whole numbers


@dataclass(frozen=True)
class Counts:
    """How often candidates have the n-grams of one length, which are numbered from 0.

    Attributes:
        candidates: (pairs,) place of a candidate in its list.
        ngrams: (pairs,) an n-gram that it has.
        counts: (pairs,) how often.
        size: how many different n-grams there are.
    """

    candidates: Integers
    ngrams: Integers
    counts: Integers
    size: int


def counts_of_ngrams(texts: Sequence[Sequence[str]], order: int) -> Iterator[Counts]:
    """Yield counts of the n-grams of 1 … `order` tokens, or letters where a text is a string.

    An n-gram is the pair of the n-gram without its last token and this token, so that numbers stay small.
    """
    numbers: dict[str, int] = {}
    tokens = np.array(
        [numbers.setdefault(token, len(numbers)) for text in texts for token in text], np.int64
    )  # (tokens,)
    lengths = [len(text) for text in texts]
    owners, starts, ngrams = np.repeat(np.arange(len(texts)), lengths), np.arange(len(tokens)), tokens  # (tokens,) each
    left = np.cumsum(lengths)[owners] - starts  # (tokens,) from here to the end of the text
    for length in range(1, order + 1):
        whole = left[starts] >= length
        starts, ngrams = starts[whole], ngrams[whole]  # (n-grams of all texts,) each
        if length > 1:
            ngrams = np.unique(ngrams * len(numbers) + tokens[starts + length - 1], return_inverse=True)[1]
        size = int(ngrams.max(initial=-1)) + 1
        pairs, counts = np.unique(owners[starts] * size + ngrams, return_counts=True)  # (pairs,), (pairs,)
        yield Counts(pairs // max(size, 1), pairs % max(size, 1), counts, size)


def scale_of(text: str, feature: str) -> float:
    """Read a scale; the default where there is none."""
    value = number(text) if text else SCALE
    if value is None or not 0 <= value < math.inf:
        raise InputError(f"feature '{feature}': expected a scale from 0, found {shown(text)}")
    return value


def posterior(sentence: Sentence, scale: float) -> Array:
    """(candidates,) probability of each by its total.

    Raises:
        InputError: a line without a total.
    """
    totals = []
    for line in sentence.lines:
        total = line.total
        if total is None:
            raise InputError(f"{sentence.place(line)}: {no_total(line)}, which features of the list need")
        totals.append(total)
    weighed = np.exp(scale * (np.array(totals) - max(totals)))
    shares: Array = weighed / weighed.sum()  # (candidates,)
    return shares
