"""Sizes and vocabulary of the texts on which the models of an experiment are trained."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from features.domain import perplexities
from features.models.cost import SUBWORDS, CorpusSize, TextSize
from features.models.settings import Training
from features.models.vocabulary import learn
from features.monolingual import MAX_SENTENCE_LENGTH, usable_sentences
from moses_io.files.errors import InputError
from moses_io.files.streams import check_plain, open_input, version_of
from moses_io.files.text import ParallelFiles, input_lines, parallel_lines, tokens

MAX_UNKNOWN, MAX_VOCABULARY = 0.015, 15_000
"""Maximum fraction of unknown words in dev and maximum vocabulary, on either side, for models of whole words."""

NUM_SUBWORDS = 4_000
"""Number of subwords of other models.

It is limited to half the number of sentence pairs, but is at least twice the number of distinct characters.
"""

MAX_MONOLINGUAL = 5
"""Maximum sentences of monolingual text for each sentence pair of the corpus."""

MIN_MONOLINGUAL = 0.2
"""Minimum sentences of monolingual text for each pair of the corpus. Shorter texts are not used."""

BIGRAMS = 100_000
"""Maximum sentences of the corpus whose bigrams are counted."""


@dataclass(frozen=True)
class Side:
    """One side of a parallel corpus.

    Attributes:
        words: running words of the training text.
        vocabulary: distinct words that are frequent enough for the vocabulary of a word-level model.
        characters: distinct characters in all words.
        unknown: fraction of the running words of dev that are not in the vocabulary, 0 … 1.
        subwords_per_word: number of subwords per running word of the training text, assumed if models have whole
            words. It only changes the expected time, so it does not count in comparisons.
    """

    words: int
    vocabulary: int
    characters: int
    unknown: float
    subwords_per_word: float = field(default=SUBWORDS, compare=False)


@dataclass(frozen=True)
class Monolingual:
    """Monolingual text, of which at most `MAX_MONOLINGUAL` sentences for each pair of the corpus can be used.

    Attributes:
        sentences: sentences that can be used, 0 if there is no text.
        words: running words of these sentences.
        perplexity: perplexity of dev by a bigram model of the corpus and these sentences. Processors may differ in its
            last digits, so it does not count in comparisons.
        corpus_perplexity: perplexity of dev by a bigram model of the corpus. It is not compared either.
    """

    sentences: int = 0
    words: int = 0
    perplexity: float = field(default=0.0, compare=False)
    corpus_perplexity: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Corpus:
    """A training corpus with a dev set.

    Attributes:
        pairs: sentence pairs of the corpus.
        dev: sentence pairs of dev.
        source: counts of the source side.
        target: counts of the target side.
        monolingual: monolingual text.
    """

    pairs: int
    dev: int
    source: Side
    target: Side
    monolingual: Monolingual = Monolingual()

    @property
    def sizes(self) -> CorpusSize:
        """Sizes of both sides, from which times are estimated."""
        source, target = (
            TextSize(self.pairs, side.words, side.vocabulary, side.subwords_per_word)
            for side in (self.source, self.target)
        )
        return source, target

    @property
    def fault_of_monolingual(self) -> str:
        """Reason why a language model of the monolingual text would not help, or empty."""
        text = self.monolingual
        if text.sentences < MIN_MONOLINGUAL * self.pairs:
            return f"it has fewer than {MIN_MONOLINGUAL:g} sentences for each pair of the corpus"
        if text.perplexity >= text.corpus_perplexity:
            change = f"from {text.corpus_perplexity:.0f} to {text.perplexity:.0f}"
            return f"it is from another domain: its first sentences raise the perplexity of dev by bigrams {change}"
        return ""

    @property
    def with_monolingual(self) -> "Corpus":
        """The corpus of language models, whose epochs also have the monolingual text."""
        target = replace(self.target, words=self.target.words + self.monolingual.words)
        return replace(self, pairs=self.pairs + self.monolingual.sentences, target=target)

    @property
    def is_known(self) -> bool:
        """Whether few words of dev are unknown."""
        return max(self.source.unknown, self.target.unknown) <= MAX_UNKNOWN

    @property
    def subwords(self) -> int:
        """Number of subwords of each side, 0 for models of whole words."""
        sides = (self.source, self.target)
        if self.is_known and max(side.vocabulary for side in sides) <= MAX_VOCABULARY:
            return 0
        return max(min(NUM_SUBWORDS, self.pairs // 2), *(2 * side.characters for side in sides))


def inspect_corpus(train: ParallelFiles, dev: ParallelFiles, monolingual: str = "") -> Corpus:
    """Count sentence pairs, words and characters of a corpus and of dev. Each version of the files is read once.

    Args:
        train: the corpus.
        dev: the texts of dev.
        monolingual: path of the monolingual text, of which only the first sentences are counted, or empty.

    Raises:
        InputError: as `parallel_lines`, a file is no plain file, or there is monolingual text and the target of the
            corpus has no usable sentence.
    """
    paths = (train.source, train.target, dev.source, dev.target)
    for path in (*paths, *([monolingual] if monolingual else [])):
        check_plain(path)
    corpus = _inspect(train, dev, tuple(map(version_of, paths)))
    if not monolingual:
        return corpus
    sentences, words = count_monolingual(monolingual, corpus.pairs)
    versions = tuple(map(version_of, (train.target, monolingual, dev.target)))
    alone, both = _perplexities(train.target, monolingual, dev.target, versions)
    return replace(corpus, monolingual=Monolingual(sentences, words, perplexity=both, corpus_perplexity=alone))


def count_monolingual(path: str, pairs: float) -> tuple[int, int]:
    """Return the usable sentences of monolingual text, and their words, among its first lines.

    At most `MAX_MONOLINGUAL` lines for each of the `pairs` of the corpus are read, as the whole text may be much
    longer. Each version of a file is read once.
    """
    return _first_lines(path, int(MAX_MONOLINGUAL * pairs), *version_of(path))


@lru_cache(10)
def _first_lines(path: str, limit: int, _changed: int, _bytes: int) -> tuple[int, int]:
    with open_input(path) as stream:
        lengths = [length for line in islice(stream, limit) if 0 < (length := len(line.split())) <= MAX_SENTENCE_LENGTH]
    return len(lengths), sum(lengths)


@lru_cache(2)
def _perplexities(target: str, text: str, dev: str, _versions: tuple[tuple[int, int], ...]) -> tuple[float, float]:
    """Return perplexities of dev by bigrams of the first sentences of the corpus, without and with those of a text."""
    corpus = list(islice(usable_sentences(target), BIGRAMS))
    if not corpus:
        raise InputError(f"{target}: no sentence of 1 to {MAX_SENTENCE_LENGTH} words")
    text_lines = islice(usable_sentences(text), MAX_MONOLINGUAL * len(corpus))
    return perplexities(corpus, text_lines, input_lines(dev))


@lru_cache(2)
def _inspect(train: ParallelFiles, dev: ParallelFiles, _versions: tuple[tuple[int, int], ...]) -> Corpus:
    pairs, training = _count(train)
    dev_pairs, dev_counts = _count(dev)
    source, target = (_side(*counts) for counts in zip(training, dev_counts, strict=True))
    corpus = Corpus(pairs=pairs, dev=dev_pairs, source=source, target=target)
    if not corpus.subwords:
        return corpus
    source, target = (
        replace(side, subwords_per_word=_subwords_per_word(counts, corpus.subwords))
        for side, counts in zip((source, target), training, strict=True)
    )
    return replace(corpus, source=source, target=target)


def _count(files: ParallelFiles) -> tuple[int, tuple[Counter[str], Counter[str]]]:
    """Return the number of pairs, and how often each word occurs in source and target."""
    pairs, sides = 0, (Counter[str](), Counter[str]())
    for pair in parallel_lines(files.source, files.target):
        pairs += 1
        for counts, line in zip(sides, pair, strict=True):
            counts.update(tokens(line))
    return pairs, sides


def _side(training: Counter[str], dev: Counter[str]) -> Side:
    known = {word for word, count in training.items() if count >= Training().min_frequency}
    unknown = sum(count for word, count in dev.items() if word not in known) / max(1, dev.total())
    characters = len({character for word in training for character in word})
    return Side(words=training.total(), vocabulary=len(known), characters=characters, unknown=unknown)


def _subwords_per_word(counts: Counter[str], number: int) -> float:
    """Return the number of subwords per running word, with `number` subwords learned from these words.

    If sentencepiece cannot learn them, the training will report it, and the result is an assumed value.
    """
    try:
        learned = learn(counts, number)
    except InputError:
        return SUBWORDS
    return sum(count * len(learned.segment(word)) for word, count in counts.items()) / max(1, counts.total())
