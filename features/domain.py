"""Similarity of text to a domain, by bigram models with Witten-Bell smoothing, which are fast to count."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import numpy as np

from features.arrays import Array, Integers
from moses_io.files.text import tokens

END, UNKNOWN = 0, 1
"""Ids of `</s>`, which is also the word before each sentence, and of words outside of the vocabulary."""

MIN_FREQUENCY = 2
"""Minimum frequency of a word of the vocabulary in the texts of the domain."""

BLOCK = 10_000
"""Sentences that are scored together."""


class Domain:
    """A domain, compared with other text by the cross-entropy difference H_domain(s) - H_general(s).

    As in Moore and Lewis 2010, but with bigram models instead of 4-gram models.

    Args:
        in_domain: sentences of the domain, at least one, with spaces between words.
        general: about as many sentences of other text.
    """

    def __init__(self, in_domain: Iterable[str], general: Iterable[str]) -> None:
        sentences = [tokens(sentence) for sentence in in_domain]
        self._vocabulary = _Vocabulary(sentences)
        self._in_domain = _BigramModel(self._vocabulary, sentences)
        self._general = _BigramModel(self._vocabulary, map(tokens, general))

    def differences(self, sentences: Iterable[str]) -> Iterator[Array]:
        """Yield the cross-entropy differences of sentences, in nats per word with `</s>`, in blocks of `BLOCK`.

        The lowest values are those of the sentences that are most like the domain.
        """
        rows = map(tokens, sentences)
        while block := list(islice(rows, BLOCK)):
            stream = self._vocabulary.stream(block)  # (N + 1,)
            values = self._general.log_probabilities(stream) - self._in_domain.log_probabilities(stream)  # (N,)
            lengths = np.array([len(row) + 1 for row in block])  # (B,)
            yield np.add.reduceat(values, np.cumsum(lengths) - lengths) / lengths  # (B,)


def perplexities(corpus: Iterable[str], more: Iterable[str], held_out: Iterable[str]) -> tuple[float, float]:
    """Return perplexities of sentences by a bigram model of a corpus, and by one of the corpus and more sentences.

    Args:
        corpus: sentences, with spaces between words. Both models have its vocabulary.
        more: more sentences.
        held_out: sentences of which the perplexities are computed, at least one.
    """
    sentences = [tokens(sentence) for sentence in corpus]
    vocabulary = _Vocabulary(sentences)
    stream = vocabulary.stream(map(tokens, held_out))  # (N + 1,)
    alone, both = (
        _BigramModel(vocabulary, chain(sentences, map(tokens, texts))).log_probabilities(stream) for texts in ((), more)
    )
    return float(np.exp(-alone.mean())), float(np.exp(-both.mean()))


class _Vocabulary:
    """The words of sentences that occur at least `MIN_FREQUENCY` times."""

    def __init__(self, sentences: Iterable[list[str]]) -> None:
        counts = Counter(word for sentence in sentences for word in sentence)
        words = (word for word, count in counts.items() if count >= MIN_FREQUENCY)
        self._ids = {word: index for index, word in enumerate(words, start=UNKNOWN + 1)}

    def __len__(self) -> int:
        return len(self._ids) + UNKNOWN + 1

    def stream(self, sentences: Iterable[list[str]]) -> Integers:
        """Return the ids of `</s>` and then of the words of all sentences, with `</s>` after each."""
        find = self._ids.get
        ids = [END]
        for sentence in sentences:
            ids += [find(word, UNKNOWN) for word in sentence]
            ids.append(END)
        return np.array(ids, dtype=np.int64)


class _BigramModel:
    """A bigram model with Witten-Bell smoothing (Witten and Bell 1991).

    p(w|v) = (c(v, w) + T(v) p(w)) / (c(v) + T(v)) with the number T(v) of distinct words after v, and add-one smoothing
    of p(w).
    """

    def __init__(self, vocabulary: _Vocabulary, sentences: Iterable[list[str]]) -> None:
        stream = vocabulary.stream(sentences)  # (N + 1,)
        size = self._size = len(vocabulary)  # V
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
        """Return (N,) an id of each word with the word before it."""
        pairs: Integers = stream[:-1] * self._size + stream[1:]
        return pairs
