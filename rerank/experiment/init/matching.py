"""Matching of texts and n-best lists by line lengths and shared words."""

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby, islice

import numpy as np

from features.arrays import Array, Integers
from moses_io.alignment import read_alignments
from moses_io.files.errors import InputError
from moses_io.files.streams import numbered_lines
from moses_io.files.text import ParallelFiles, decode, input_lines, number, parallel_lines, tokens, without_line_end
from moses_io.filters import FACTORS, SUBWORDS, Forms
from moses_io.input_filters import InputFilters
from moses_io.nbest import read_nbest, without_marks
from rerank.linear.candidates import FeatureSpace

SAMPLE_SIZE = 10_000
"""Maximum lines of a text whose words are counted, and maximum words of an n-gram model."""

TO_WORDS = InputFilters(",".join(form.filter for form in (FACTORS, *SUBWORDS)))
"""Filters to words, so that words of references can be compared with factors or subwords of lists."""

Words = Counter[str]
"""Number of occurrences of each word in a text."""


@dataclass(frozen=True)
class Text:
    """A text file with one sentence per line."""

    path: str
    lines: int


@dataclass(frozen=True)
class ListContent:
    """Data of an n-best list of n sentences that are needed to match texts.

    Attributes:
        path: the list.
        sentences: (n,) ids.
        lengths: (n,) mean number of words of a candidate.
        words: word counts over the first candidate of each sentence.
        candidates: (m,) a hash of each candidate's sentence id and tokens.
        space: dense features, which all lines of a list share.
        input_filter: names of the filters that join the subwords of the list, or empty.
    """

    path: str
    sentences: Integers
    lengths: Array
    words: Words
    candidates: Integers
    space: FeatureSpace
    input_filter: str

    @property
    def lines(self) -> int:
        """Minimum number of lines of the source."""
        return int(self.sentences.max()) + 1


def read_list(path: str) -> ListContent:
    """Read a list to its end. Raises `InputError` if the list is malformed or has segmentation marks."""
    sentences = []
    lengths = []
    words = Words()
    candidates = array("q")
    dense: tuple[tuple[str, int], ...] = ()
    forms = Forms()
    for sentence_list in without_marks(read_nbest(path)):
        first = sentence_list.hypotheses[0]
        texts = [tokens(TO_WORDS(hypothesis.text)) for hypothesis in sentence_list.hypotheses]
        sentences.append(sentence_list.sentence)
        lengths.append(sum(map(len, texts)) / len(texts))
        words.update(texts[0])
        forms.add(first.text)
        candidates.extend(_hash(sentence_list.sentence, text) for text in texts)
        dense = tuple((name, len(values)) for name, values in first.dense)  # all lines have the same features
    return ListContent(
        path=path,
        sentences=np.array(sentences),
        lengths=np.array(lengths),
        words=words,
        candidates=np.array(candidates, dtype=np.int64),
        space=FeatureSpace(dense),
        input_filter=",".join(form.filter for form in (FACTORS, *SUBWORDS) if form in forms),
    )


def read_text(path: str) -> Text:
    """Count the lines of a text. Raises `InputError` if the file cannot be read."""
    return Text(path, sum(1 for _ in numbered_lines(path)))


def length_correlation(content: ListContent, text: Text) -> float:
    """Return Pearson's correlation of line lengths and mean candidate lengths, or 0 if one of them does not vary."""
    rows = [len(row) for row in _token_rows(text.path, content.lines)]
    pair = np.array([content.lengths, np.array(rows)[content.sentences]])  # (2, n)
    return float(np.corrcoef(pair)[0, 1]) if pair.std(axis=1).all() else 0.0


def is_translation(content: ListContent, text: Text) -> bool:
    """Return whether each line of a text is a candidate of its sentence.

    Lines of sentences that are not in the list are ignored.
    """
    rows = _token_rows(text.path, content.lines)
    hashes = [_hash(sentence, rows[sentence]) for sentence in content.sentences.tolist()]
    return bool(np.isin(hashes, content.candidates).all())


def count_words(path: str) -> Words:
    """Count the words in the first `SAMPLE_SIZE` lines of a text."""
    return Words(word for row in _token_rows(path, SAMPLE_SIZE) for word in row)


def read_unigrams(path: str) -> set[str]:
    """Return the `SAMPLE_SIZE` most probable words of an n-gram model in ARPA format.

    Rare words are left out, because a large model has words of many languages.
    """
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
    return {word for _, word in heapq.nlargest(SAMPLE_SIZE, unigrams)}


def coverage(words: Words, known: Set[str]) -> float:
    """Return the fraction of running words that are known, 0 … 1."""
    return sum(count for word, count in words.items() if word in known) / max(1, words.total())


def _hash(sentence: int, text: Sequence[str]) -> int:
    """Return a hash of a candidate. The texts of a large list would take too much memory."""
    return hash((sentence, *text))


def _token_rows(path: str, limit: int) -> list[list[str]]:
    return [tokens(TO_WORDS(line)) for line in islice(input_lines(path), limit)]


MIN_CORRELATION = 0.5
"""Minimum `length_correlation` of a text and its list. For unrelated texts it is near 0."""

MAX_SOURCE_OVERLAP = 0.85
"""Maximum word overlap of a source with the candidates, relative to the overlap of the references."""

MIN_AGREEMENT = 0.85
"""Minimum agreement of a reference with the candidates, relative to the text that agrees best.

The ratio is 0.78 to 0.82 for references without tokenization, and about 0.9 if only the case of first words differs.
"""

COVERAGE_MARGIN = 0.05
"""Maximum loss of coverage of dev's words, 0 … 1, for which a longer corpus is preferred."""

MIN_COVERAGE = 1 / 3
"""Minimum fraction of dev's running words that a training text of the same language covers."""


@dataclass(frozen=True)
class TextsByLanguage:
    """Texts with the same number of lines, such as the texts of a list, divided by language.

    Attributes:
        sources: texts in the source language.
        references: texts in the target language.
    """

    sources: tuple[Text, ...]
    references: tuple[Text, ...]


@dataclass(frozen=True)
class Languages:
    """Word counts of dev in both languages, for language identification."""

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
        """Return whether a vocabulary covers more of the source side of dev than of its target side."""
        return coverage(self.source, known) > coverage(self.target, known)

    def is_target(self, words: Words) -> bool:
        """Return whether words are of the target language only, by the words of dev."""
        in_source, in_target = (coverage(words, side.keys()) for side in (self.source, self.target))
        return coverage(self.target, words.keys()) > MIN_COVERAGE and in_source < MAX_SOURCE_OVERLAP * in_target

    def split(self, texts: Sequence[Text]) -> TextsByLanguage:
        """Divide texts by language."""
        sources = tuple(text for text in texts if self.is_source(count_words(text.path).keys()))
        return TextsByLanguage(sources, tuple(text for text in texts if text not in sources))


def texts_of(content: ListContent, texts: Sequence[Text]) -> list[Text]:
    """Return the texts whose line lengths correlate with the candidates, in the order of `texts`.

    All of them have the same number of lines: at least one line for each sentence, and as few more as possible.
    """
    long_enough = sorted((text for text in texts if text.lines >= content.lines), key=lambda text: text.lines)
    for _, group in groupby(long_enough, key=lambda text: text.lines):
        if fitting := [text for text in group if length_correlation(content, text) > MIN_CORRELATION]:
            return fitting
    return []


def split_by_candidates(content: ListContent, texts: Sequence[Text]) -> TextsByLanguage:
    """Divide texts of a list by language, according to the words that they share with the candidates.

    References share the most words. If no text coverages clearly less, or there is only one text, all texts are
    references.
    """
    coverages = {text: coverage(content.words, count_words(text.path).keys()) for text in texts}
    low, high = min(coverages.values(), default=0.0), max(coverages.values(), default=0.0)
    middle = (low + high) / 2 if low < MAX_SOURCE_OVERLAP * high else 0.0
    sources = tuple(text for text in texts if coverages[text] < middle)
    return TextsByLanguage(sources, tuple(text for text in texts if text not in sources))


def drop_dissimilar(content: ListContent, split: TextsByLanguage) -> TextsByLanguage:
    """Drop references that agree clearly less with the candidates than the best text.

    They are not tokenized, or have tags instead of words.

    Agreement is the product of two coverages: candidate words that are in the text, and text words that are in the
    candidates.
    """
    counts = {text: count_words(text.path) for text in (*split.sources, *split.references)}
    agreement = {
        text: coverage(content.words, words.keys()) * coverage(words, content.words.keys())
        for text, words in counts.items()
    }
    minimum = MIN_AGREEMENT * max(agreement.values(), default=0.0)
    return replace(split, references=tuple(text for text in split.references if agreement[text] >= minimum))


def parallel_groups(texts: Sequence[Text]) -> list[list[Text]]:
    """Return groups of two or more texts with the same number of lines, longest texts first."""
    by_lines = sorted(texts, key=lambda text: -text.lines)
    groups = [list(group) for _, group in groupby(by_lines, key=lambda text: text.lines)]
    return [group for group in groups if len(group) > 1]


def closest_pair(languages: Languages, group: Sequence[Text]) -> tuple[Text, Text, float] | None:
    """Return the source and target text of a group that cover dev best. On a tie, return the first pair.

    Returns:
        Source text, target text, and the mean of their coverages of dev, 0 … 1. None if a language has no text or a
        coverage is not above `MIN_COVERAGE`.
    """
    split = languages.split(group)
    source, source_coverage = _closest(languages.source, split.sources)
    target, target_coverage = _closest(languages.target, split.references)
    if source is None or target is None or min(source_coverage, target_coverage) <= MIN_COVERAGE:
        return None
    return source, target, (source_coverage + target_coverage) / 2


def alignment_fault(path: str, corpus: ParallelFiles) -> str:
    """Return why a word alignment is not used for a corpus, or an empty string if it is used."""
    source_lengths, target_lengths = array("i"), array("i")
    for source, target in parallel_lines(corpus.source, corpus.target):
        source_lengths.append(len(tokens(source)))
        target_lengths.append(len(tokens(target)))
    try:
        read_alignments(path, source_lengths, target_lengths)
    except InputError as error:
        return f"does not fit the training corpus: {error}"
    return f"{corpus.alignment} is already the word alignment of the training corpus" if corpus.alignment else ""


def _closest(words: Words, texts: Sequence[Text]) -> tuple[Text | None, float]:
    """Return the text that covers the words best, and its coverage, or None and 0 if there is no text."""
    coverages = [coverage(words, count_words(text.path).keys()) for text in texts]
    best = max(coverages, default=0.0)
    return (texts[coverages.index(best)] if coverages else None), best
