"""Which texts belong to a list, in which of the two languages a text is, and what is read of both to see it."""

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby, islice

import numpy as np

from features.arrays import Array, Integers
from features.models.training.request import ParallelFiles
from moses_io.alignment import read_alignments
from moses_io.files.errors import InputError
from moses_io.files.streams import numbered_lines
from moses_io.files.text import decode, input_lines, number, read_parallel, tokens, without_line_end
from moses_io.nbest import read_nbest, without_marks
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


CORRELATED = 0.5
"""Least correlation of line lengths of a text with those of candidates that belong to it; it is near 0 for others."""

FOREIGN = 0.85
"""Words that a source shares with candidates, at most, as a part of those that the references share."""

NEARLY = 0.85
"""Least agreement of a reference with the candidates, as a part of that of the best text of the list.

It is 0.78 to 0.82 for references that are not tokenized and about 0.9 for those with another case at the beginning.
"""

MARGIN = 0.05
"""Share of the words of dev that a corpus may lack beside another one, and be taken because it is longer."""

KNOWN = 1 / 3
"""Least share of the words of dev that a training text has in the same language."""


@dataclass(frozen=True)
class TextsByLanguage:
    """Texts of as many lines that belong together, such as those of a list."""

    sources: tuple[Text, ...]
    references: tuple[Text, ...]


@dataclass(frozen=True)
class Languages:
    """The words of dev in both languages."""

    source: Words
    target: Words

    @classmethod
    def of(cls, split: TextsByLanguage) -> "Languages":
        """Count the words of the texts of dev."""
        source, target = (
            sum((count_words(text.path) for text in texts), Words()) for texts in (split.sources, split.references)
        )
        return cls(source=source, target=target)

    def is_source(self, known: Set[str]) -> bool:
        """Tell whether a vocabulary is of the source language, by the words of dev that are in it."""
        return share(self.source, known) > share(self.target, known)

    def split(self, texts: Sequence[Text]) -> TextsByLanguage:
        """Tell the language of texts."""
        sources = tuple(text for text in texts if self.is_source(count_words(text.path).keys()))
        return TextsByLanguage(sources, tuple(text for text in texts if text not in sources))


def texts_of(content: ListContent, texts: Sequence[Text]) -> list[Text]:
    """Return the texts whose lines are as long as the candidates, in their order.

    They have a line for each sentence; more lines where the last sentences have no candidates, as few as possible.
    """
    long_enough = sorted((text for text in texts if text.lines >= content.lines), key=lambda text: text.lines)
    for _, group in groupby(long_enough, key=lambda text: text.lines):
        if fitting := [text for text in group if likeness(content, text) > CORRELATED]:
            return fitting
    return []


def split_by_candidates(content: ListContent, texts: Sequence[Text]) -> TextsByLanguage:
    """Tell the language of texts of a list by the words that they share with its candidates.

    The references share most; where no text shares clearly less, or there is but one, all are references.
    """
    shares = {text: share(content.words, count_words(text.path).keys()) for text in texts}
    low, high = min(shares.values(), default=0.0), max(shares.values(), default=0.0)
    middle = (low + high) / 2 if low < FOREIGN * high else 0.0
    sources = tuple(text for text in texts if shares[text] < middle)
    return TextsByLanguage(sources, tuple(text for text in texts if text not in sources))


def without_unlike(content: ListContent, split: TextsByLanguage) -> TextsByLanguage:
    """Leave out references that agree clearly less with the candidates than the best text does: not tokenized, or tags.

    Words agree as far as those of the candidates are in the text, times as far as those of the text are in them.
    """
    counts = {text: count_words(text.path) for text in (*split.sources, *split.references)}
    agreement = {
        text: share(content.words, words.keys()) * share(words, content.words.keys()) for text, words in counts.items()
    }
    least = NEARLY * max(agreement.values(), default=0.0)
    return replace(split, references=tuple(text for text in split.references if agreement[text] >= least))


def parallel_groups(texts: Sequence[Text]) -> list[list[Text]]:
    """Return the groups of two or more texts of equally many lines, the longest first."""
    by_lines = sorted(texts, key=lambda text: -text.lines)
    groups = [list(group) for _, group in groupby(by_lines, key=lambda text: text.lines)]
    return [group for group in groups if len(group) > 1]


def closest_pair(languages: Languages, group: Sequence[Text]) -> tuple[Text, Text, float] | None:
    """Return the texts of a group that have most of the words of dev, if those have enough; of equals the first.

    Returns:
        A text, its translation, and the share of the words of dev that they have, the mean of both.
    """
    split = languages.split(group)
    source, known_source = _closest(languages.source, split.sources)
    target, known_target = _closest(languages.target, split.references)
    if source is None or target is None or min(known_source, known_target) <= KNOWN:
        return None
    return source, target, (known_source + known_target) / 2


def fault_of_alignment(path: str, corpus: ParallelFiles) -> str:
    """Say why a word alignment is not taken for that of a corpus, nothing if it is."""
    pairs = [(tokens(source), tokens(target)) for source, target in read_parallel(corpus.source, corpus.target)]
    try:
        read_alignments(path, pairs)
    except InputError as error:
        return f"not that of the training corpus: {error}"
    return f"{corpus.alignment} is that of the training corpus, too" if corpus.alignment else ""


def _closest(words: Words, texts: Sequence[Text]) -> tuple[Text | None, float]:
    """Return the text that has most of the words, and which share of them."""
    shares = [share(words, count_words(text.path).keys()) for text in texts]
    known = max(shares, default=0.0)
    return (texts[shares.index(known)] if shares else None), known
