"""Which texts belong to a list, and in which of the two languages a text is."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby

from features.models.training.request import ParallelFiles
from moses_io.alignment import read_alignments
from moses_io.errors import InputError
from moses_io.text import read_parallel, tokens
from rerank.experiment.init.contents import ListContent, Text, Words, count_words, likeness, share

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


@dataclass(frozen=True)
class Pair:
    """A text and its translation; `known` is the share of the words of dev that they have, the mean of both."""

    source: Text
    target: Text
    known: float


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


def closest_pair(languages: Languages, group: Sequence[Text]) -> Pair | None:
    """Return the texts of a group that have most of the words of dev, if those have enough; of equals the first."""
    split = languages.split(group)
    source, known_source = _closest(languages.source, split.sources)
    target, known_target = _closest(languages.target, split.references)
    if source is None or target is None or min(known_source, known_target) <= KNOWN:
        return None
    return Pair(source=source, target=target, known=(known_source + known_target) / 2)


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
