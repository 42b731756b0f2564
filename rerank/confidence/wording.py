"""How a text of a list is worded, and what opinions of the list, as probabilities of its texts, say of that."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from features.formulas import bleu
from features.ngrams import ORDER, count_ngrams
from moses_io.nbest import SentenceList
from moses_io.text import tokens


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

    def __init__(self, candidates: SentenceList) -> None:
        places: dict[tuple[str, ...], int] = {}
        own = [places.setdefault(tuple(tokens(each.text)), len(places)) for each in candidates.hypotheses]
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
