"""What is read of lists and texts to see which of them go together."""

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np

from features.arrays import Array, Integers
from moses_io.nbest import read_nbest, without_marks
from moses_io.streams import numbered_lines
from moses_io.text import decode, input_lines, number, tokens, without_line_end
from rerank.linear.candidates import FeatureSpace

SOME = 10_000
"""Lines of a text whose words are counted; words of an n-gram model that are looked at."""

Words = Counter[str]
"""How often each word stands in a text."""


@dataclass(frozen=True)
class Text:
    """A sentence a line."""

    path: str
    lines: int


@dataclass(frozen=True)
class ListContent:
    """What is kept of an n-best list of n sentences.

    Attributes:
        path: of the list.
        sentences: (n,) ids.
        lengths: (n,) words of a candidate, in the mean.
        words: of the first candidate of each sentence.
        candidates: (m,) a hash of each candidate's tokens with its sentence.
        space: dense features, those of the first line.
    """

    path: str
    sentences: Integers
    lengths: Array
    words: Words
    candidates: Integers
    space: FeatureSpace

    @property
    def lines(self) -> int:
        """Lines that its source has at least."""
        return int(self.sentences.max()) + 1


def read_list(path: str) -> ListContent:
    """Read a list to its end; errors are those of `read_nbest` and `without_marks`."""
    sentences, lengths, words, candidates = [], [], Words(), array("q")
    dense: tuple[tuple[str, int], ...] = ()
    for sentence_list in without_marks(read_nbest(path)):
        first = sentence_list.hypotheses[0]
        texts = [tokens(hypothesis.text) for hypothesis in sentence_list.hypotheses]
        sentences.append(sentence_list.sentence)
        lengths.append(sum(map(len, texts)) / len(texts))
        words.update(texts[0])
        candidates.extend(_hash(sentence_list.sentence, text) for text in texts)
        dense = tuple((name, len(values)) for name, values in first.dense)  # the same in each line
    return ListContent(
        path=path,
        sentences=np.array(sentences),
        lengths=np.array(lengths),
        words=words,
        candidates=np.array(candidates, dtype=np.int64),
        space=FeatureSpace(dense),
    )


def read_text(path: str) -> Text:
    """Count the lines of a text; errors are those of `numbered_lines`."""
    return Text(path, sum(1 for _ in numbered_lines(path)))


def likeness(content: ListContent, text: Text) -> float:
    """Return how line lengths of a text go with those of candidates: Pearson's correlation, 0 where all are equal."""
    rows = [len(row) for row in _rows(text.path, content.lines)]
    pair = np.array([content.lengths, np.array(rows)[content.sentences]])  # (2, n)
    return float(np.corrcoef(pair)[0, 1]) if pair.std(axis=1).all() else 0.0


def is_translation(content: ListContent, text: Text) -> bool:
    """Tell whether each line of a text is a candidate of its sentence; lines of others make no difference."""
    rows = _rows(text.path, content.lines)
    hashes = [_hash(sentence, rows[sentence]) for sentence in content.sentences.tolist()]
    return bool(np.isin(hashes, content.candidates).all())


def count_words(path: str) -> Words:
    """Count the words in the first lines of a text."""
    return Words(word for row in _rows(path, SOME) for word in row)


def read_unigrams(path: str) -> set[str]:
    """Return the likeliest words of an n-gram model in the ARPA format; a large one knows words of any language."""
    unigrams: list[tuple[float, str]] = []
    inside = False
    for _, line in numbered_lines(path):
        text = decode(without_line_end(line))
        if inside and text.startswith("\\"):
            break
        inside = inside or text.strip(" ") == "\\1-grams:"
        logarithm, word, *_ = [*tokens(text.replace("\t", " ")), "", ""]
        if inside and (value := number(logarithm)) is not None:
            unigrams.append((value, word))
    return {word for _, word in heapq.nlargest(SOME, unigrams)}


def share(words: Words, known: Set[str]) -> float:
    """Return which part of the running words is known, 0 … 1."""
    return sum(count for word, count in words.items() if word in known) / max(1, words.total())


def _hash(sentence: int, text: Sequence[str]) -> int:
    """Stand for a candidate: lists are too large to keep their texts."""
    return hash((sentence, *text))


def _rows(path: str, most: int) -> list[list[str]]:
    return [tokens(line) for line in islice(input_lines(path), most)]
