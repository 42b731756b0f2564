"""Cross-entropy difference of sentences between a domain and other text (Moore and Lewis 2010).

The paper has 4-grams. Here both models are bigram models with Witten-Bell smoothing, which are fast to count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from features.arrays import Array, Integers
from moses_io.files.text import tokens

END, UNKNOWN = 0, 1
"""Numbers of `</s>`, which is also the word before each sentence, and of words outside of the vocabulary."""

FEWEST = 2
"""Minimum frequency of a word of the vocabulary in the texts of the domain."""

BLOCK = 10_000
"""Sentences that are scored together."""


class Domain:
    """A domain, compared with other text.

    Args:
        inside: sentences of the domain, with spaces between words.
        outside: sentences of other text. As many as sentences of the domain are read.
    """

    def __init__(self, inside: Iterable[str], outside: Iterable[str]) -> None:
        sentences = [tokens(sentence) for sentence in inside]
        counts = Counter(word for sentence in sentences for word in sentence)
        words = [word for word, count in counts.items() if count >= FEWEST]
        self._numbers = {word: number for number, word in enumerate(words, start=UNKNOWN + 1)}
        size = len(words) + UNKNOWN + 1
        self._inside = _BigramModel(self._stream(sentences), size)
        others = [tokens(sentence) for sentence in islice(outside, len(sentences))]
        self._outside = _BigramModel(self._stream(others), size)

    def differences(self, sentences: Iterable[str]) -> Iterator[Array]:
        """Yield the cross-entropy differences of sentences, in nats per word with `</s>`, in blocks of `BLOCK`.

        The lowest values are those of the sentences that are most like the domain.
        """
        rows = map(tokens, sentences)
        while block := list(islice(rows, BLOCK)):
            stream = self._stream(block)  # (N + 1,)
            values = self._outside.log_probabilities(stream) - self._inside.log_probabilities(stream)  # (N,)
            lengths = np.array([len(row) + 1 for row in block])  # (B,)
            yield np.add.reduceat(values, np.cumsum(lengths) - lengths) / lengths  # (B,)

    def _stream(self, sentences: Iterable[list[str]]) -> Integers:
        """Return `</s>` and then the words of all sentences with `</s>` after each, as numbers."""
        find = self._numbers.get
        numbers = [END]
        for sentence in sentences:
            numbers += [find(word, UNKNOWN) for word in sentence]
            numbers.append(END)
        return np.array(numbers, dtype=np.int64)


class _BigramModel:
    """A bigram model with Witten-Bell smoothing. Unigrams have add-one smoothing.

    Args:
        stream: (N + 1,) numbers of the words of a text, as `Domain` makes them.
        size: size V of the vocabulary.
    """

    def __init__(self, stream: Integers, size: int) -> None:
        self._size = size
        unigrams = np.bincount(stream[1:], minlength=size)  # (V,)
        self._unigrams = (unigrams + 1) / (unigrams.sum() + size)  # (V,)
        self._pairs, self._counts = np.unique(self._pairs_of(stream), return_counts=True)  # (P,)
        followers = np.bincount(self._pairs // size, minlength=size)  # (V,) distinct words after each word
        total = np.bincount(stream[:-1], minlength=size) + followers  # (V,)
        self._backoff = np.where(total, followers / np.maximum(total, 1), 1.0)  # (V,)
        self._total = np.maximum(total, 1)  # (V,)

    def log_probabilities(self, stream: Integers) -> Array:
        """Return (N,) the log-probability of each word of a stream but the first."""
        before, words, pairs = stream[:-1], stream[1:], self._pairs_of(stream)  # (N,)
        index = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)  # (N,)
        counts = np.where(self._pairs[index] == pairs, self._counts[index], 0)  # (N,)
        probabilities = counts / self._total[before] + self._backoff[before] * self._unigrams[words]  # (N,)
        logarithms: Array = np.log(probabilities)
        return logarithms

    def _pairs_of(self, stream: Integers) -> Integers:
        """Return (N,) a number for each word and the word before it."""
        pairs: Integers = stream[:-1] * self._size + stream[1:]
        return pairs
