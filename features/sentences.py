"""Tokenized sentences of a large corpus in little memory."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from features.ragged import Ragged
from moses_io.files.text import encode

TokenPair = tuple[list[str], list[str]]
"""Tokens of a source sentence and of its translation, as the network reads and predicts them."""


@dataclass(frozen=True)
class Sentences(Sequence[list[str]]):
    """Tokenized sentences, each as indices of its words.

    Attributes:
        words: distinct words.
        numbers: index of each word of each sentence.
    """

    words: list[str]
    numbers: Ragged

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Sentences":
        """Copy tokenized sentences, except those that are `Sentences` already."""
        if isinstance(sentences, Sentences):
            return sentences
        builder = _Builder()
        for tokens in sentences:
            builder.add(tokens)
        return builder.sentences()

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, number: int) -> list[str]: ...
    @overload
    def __getitem__(self, number: slice) -> "Sentences": ...
    def __getitem__(self, number: "int | slice") -> "list[str] | Sentences":
        if isinstance(number, slice):
            return Sentences(self.words, self.numbers.part(number))
        return [self.words[index] for index in self.numbers[range(len(self))[number]]]

    def __iter__(self) -> Iterator[list[str]]:
        word = self.words.__getitem__
        for row in self.numbers:
            yield list(map(word, row))

    def select(self, mask: NDArray[np.bool_]) -> "Sentences":
        """Return the sentences for which `mask` is true."""
        return Sentences(self.words, self.numbers.select(mask))

    def with_first_word(self, word: str) -> "Sentences":
        """Return the sentences with `word` inserted at the start of each."""
        words = self.words if word in self.words else [*self.words, word]
        values = np.insert(self.numbers.values, self.numbers.ends[:-1], words.index(word))  # (N + P,)
        return Sentences(words, Ragged(values, self.numbers.ends + np.arange(len(self) + 1)))

    def joined(self, other: "Sentences") -> "Sentences":
        """Return these sentences and then those of another text."""
        index = {word: number for number, word in enumerate(self.words)}
        known = [index.setdefault(word, len(index)) for word in other.words]
        numbers = np.array(known, np.int32)[other.numbers.values]
        return Sentences(list(index), Ragged.joined([self.numbers, Ragged(numbers, other.numbers.ends)]))

    def repeated(self, count: int) -> "Sentences":
        """Return all sentences `count` times."""
        return Sentences(self.words, Ragged.joined([self.numbers] * count)) if count > 1 else self

    def counts(self) -> dict[str, int]:
        """Return the number of occurrences of each word that occurs."""
        counts = np.bincount(self.numbers.values, minlength=len(self.words)).tolist()
        return {word: count for word, count in zip(self.words, counts, strict=True) if count}


def line_of(source: Sequence[str], target: Sequence[str]) -> bytes:
    """Return a sentence pair as a line: both sides, separated by a tab."""
    return encode(f"{' '.join(source)}\t{' '.join(target)}\n")


class _Builder:
    """Sentences, to which more sentences are added."""

    def __init__(self) -> None:
        self._known: defaultdict[str, int] = defaultdict()
        self._known.default_factory = self._known.__len__
        self._numbers, self._ends = array("i"), array("q", [0])

    def add(self, tokens: Sequence[str]) -> None:
        self._numbers.extend(map(self._known.__getitem__, tokens))
        self._ends.append(len(self._numbers))

    def sentences(self) -> Sentences:
        numbers, ends = np.asarray(self._numbers, np.int32), np.asarray(self._ends, np.int64)
        return Sentences(list(self._known), Ragged(numbers, ends))


@dataclass(frozen=True)
class TokenPairs(Sequence[TokenPair]):
    """Tokenized sentence pairs of a corpus.

    Attributes:
        source: source sentences.
        target: their translations.
        digest: SHA-256 of all `line_of`, None for pairs made from others. To compute it later takes longer, because the
            words are spread over the memory.
    """

    source: Sentences
    target: Sentences
    digest: "hashlib._Hash | None" = None

    @classmethod
    def of(cls, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> "TokenPairs":
        """Copy tokenized sentence pairs, except those that are `TokenPairs` already."""
        if isinstance(pairs, TokenPairs):
            return pairs
        source, target, digest = _Builder(), _Builder(), hashlib.sha256()
        for left, right in pairs:
            source.add(left)
            target.add(right)
            digest.update(line_of(left, right))
        return cls(source.sentences(), target.sentences(), digest)

    def __len__(self) -> int:
        return len(self.source)

    @overload
    def __getitem__(self, number: int) -> TokenPair: ...
    @overload
    def __getitem__(self, number: slice) -> "TokenPairs": ...
    def __getitem__(self, number: "int | slice") -> "TokenPair | TokenPairs":
        if isinstance(number, slice):
            return TokenPairs(self.source[number], self.target[number])
        return self.source[number], self.target[number]

    def __iter__(self) -> Iterator[TokenPair]:
        return zip(self.source, self.target, strict=True)

    def select(self, mask: NDArray[np.bool_]) -> "TokenPairs":
        """Return the pairs for which `mask` is true."""
        return TokenPairs(self.source.select(mask), self.target.select(mask))

    def joined(self, other: "TokenPairs") -> "TokenPairs":
        """Return these pairs and then those of another corpus."""
        return TokenPairs(self.source.joined(other.source), self.target.joined(other.target))

    def repeated(self, count: int) -> "TokenPairs":
        """Return all pairs `count` times."""
        return TokenPairs(self.source.repeated(count), self.target.repeated(count)) if count > 1 else self

    def swapped(self) -> "TokenPairs":
        """Return the pairs with source and target swapped."""
        return TokenPairs(self.target, self.source)
