"""What the lists and choices of a set are like, in numbers that reports show.

Words by their frequency in training are those of compare-mt (Neubig et al. 2019).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from features.arrays import Array
from features.formulas import Ngram, Ngrams, count_ngrams
from features.progress import with_bar
from moses_io.files.text import input_lines, tokens, without_missing
from rerank.metrics.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.report.breakdown import Bin, Depth, Depths, by_length, by_margin, statistics

BOUNDS = (0, 1, 2, 5, 10, 100, 1000)
"""Least counts of the bins."""


@dataclass(frozen=True)
class Frequency:
    """Words that the training text has about as often.

    Attributes:
        lower: the least count.
        upper: the largest; None where there is no bound.
        words: of the references.
        scores: by system, F1 of these words, 0 to 100.
    """

    lower: int
    upper: int | None
    words: int
    scores: dict[str, float]

    @property
    def name(self) -> str:
        """The counts in short."""
        if self.upper is None:
            return f"{self.lower}+"
        return str(self.lower) if self.lower == self.upper else f"{self.lower}-{self.upper}"


def vocabulary(texts: Iterable[Sequence[str]]) -> set[str]:
    """Return all words of some texts."""
    return {word for lines in texts for line in lines for word in tokens(line)}


def count_words(lines: Iterable[str], wanted: set[str]) -> Counter[str]:
    """Count those words of a text that are wanted."""
    return Counter(word for line in lines for word in tokens(line) if word in wanted)


def by_frequency(
    counts: Mapping[str, int], references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]
) -> list[Frequency]:
    """Return, from rare to frequent, bins that the references have words of.

    A word of a sentence is right as often as the reference has it, too; of several references each is a sentence of
    its own, unless it is missing.

    Args:
        counts: of words in the training text; a word that is missing has none.
        references: of each set of references n lines.
        systems: of each system n lines, by its name.
    """
    pairs = [
        (sentence, line)
        for sentence, lines in enumerate(zip(*references, strict=True))
        for line in without_missing(lines)
    ]
    answers = [line for _, line in pairs]
    translations = {name: [lines[sentence] for sentence, _ in pairs] for name, lines in systems.items()}
    expected = _binned(counts, answers)
    found = {name: _binned(counts, lines) for name, lines in translations.items()}
    right = {name: _binned(counts, lines, answers) for name, lines in translations.items()}
    bins = []
    for lower, after in pairwise([*BOUNDS, 0]):
        if words := expected[lower]:
            both = {name: words + found[name][lower] for name in systems}
            scores = {name: 200 * right[name][lower] / both[name] for name in systems}
            bins.append(Frequency(lower, after - 1 if after else None, words, scores))
    return bins


def _binned(counts: Mapping[str, int], lines: Sequence[str], others: Sequence[str] | None = None) -> Counter[int]:
    """Count the words of lines by the lower bounds of their bins; with other lines those words that both have."""
    binned = Counter[int]()
    for line, other in zip(lines, others or lines, strict=True):
        for word, count in (Counter(tokens(line)) & Counter(tokens(other))).items():
            binned[max(bound for bound in BOUNDS if bound <= counts.get(word, 0))] += count
    return binned


MOST = 10


@dataclass(frozen=True)
class Matched:
    """An n-gram, how often it stands where a reference has it, before and after, and the id of an example."""

    ngram: str
    before: int
    after: int
    sentence: int


@dataclass(frozen=True)
class NgramChanges:
    """N-grams whose matches in some sentences rose most, and those whose matches fell most."""

    sentences: int
    won: tuple[Matched, ...]
    lost: tuple[Matched, ...]


def ngram_changes(references: Sequence[Sequence[str]], before: Sequence[str], after: Sequence[str]) -> NgramChanges:
    """Return the n-grams, of 1 to 4 words, with the largest differences in clipped matches, `MOST` of each kind.

    Of equal differences the longer n-gram comes first. An example is the first sentence that has more, or fewer,
    matches after than before.

    Args:
        references: of each set of references n lines.
        before: n lines.
        after: the same, reranked.
    """
    old, new = Ngrams(), Ngrams()
    rises: dict[Ngram, int] = {}
    falls: dict[Ngram, int] = {}
    for sentence, (one, other, *answers) in enumerate(zip(before, after, *references, strict=True)):
        most = Ngrams()
        for answer in without_missing(answers):
            most |= count_ngrams(tokens(answer))
        own, others = (count_ngrams(tokens(line)) & most for line in (one, other))
        old.update(own)
        new.update(others)
        for examples, gained in ((rises, others - own), (falls, own - others)) if own != others else ():
            for ngram in gained:
                examples.setdefault(ngram, sentence)
    return NgramChanges(len(before), won=_first(old, new, rises, 1), lost=_first(old, new, falls, -1))


def _first(old: Ngrams, new: Ngrams, examples: dict[Ngram, int], sign: int) -> tuple[Matched, ...]:
    """Return those whose matches rose most or, with the other sign, fell most."""
    changed = [ngram for ngram in examples if sign * (new[ngram] - old[ngram]) > 0]
    changed.sort(key=lambda ngram: (-abs(new[ngram] - old[ngram]), -len(ngram), ngram))
    return tuple(Matched(" ".join(ngram), old[ngram], new[ngram], examples[ngram]) for ngram in changed[:MOST])


WIDTH = 10
"""Points of sentence BLEU that a bin of differences has."""


@dataclass(frozen=True)
class Gains:
    """Differences of smoothed sentence BLEU, after minus before.

    Attributes:
        lower: the lower bounds of bins, `WIDTH` wide, from -100.
        counts: sentences in each bin, those without a difference left out.
        rose: sentences in all whose BLEU rose.
        fell: that fell.
        stayed: that stayed as they were.
    """

    lower: tuple[int, ...]
    counts: tuple[int, ...]
    rose: int
    fell: int
    stayed: int


def find_gains(before: Array, after: Array) -> Gains:
    """Return how many of n sentences gained and lost how much, by their (n, 9) statistics of BLEU."""
    smoothed = Metric("bleu").formula.smoothed
    differences = 100 * np.round(smoothed(after) - smoothed(before), DECIMALS)  # (n,)
    changed = differences[differences != 0]  # (changed,)
    edges = np.arange(-100, 101, WIDTH)
    counts, _ = np.histogram(changed, edges)
    rose = int((changed > 0).sum())
    return Gains(
        lower=tuple(edges[:-1].tolist()),
        counts=tuple(counts.tolist()),
        rose=rose,
        fell=len(changed) - rose,
        stayed=len(differences) - len(changed),
    )


@dataclass(frozen=True)
class Judged:
    """What only references tell."""

    gains: Gains
    lengths: list[Bin]
    margins: list[Bin]
    words: list[Frequency]
    ngrams: NgramChanges


@dataclass(frozen=True)
class Analysis:
    """Numbers of a list and of what was chosen from it before and after; `judged` is None without references."""

    sentences: int
    depths: list[Depth]
    judged: Judged | None


def analyse(
    depths: Depths,
    margins: Mapping[int, float],
    source: Sequence[str],
    references: Sequence[Sequence[str]],
    systems: Mapping[str, Sequence[str]],
    train_target: str,
    filters: Filters,
) -> Analysis:
    """Analyse a list and the lines of two systems, that before and that after.

    Args:
        depths: what was chosen among the first candidates of the list.
        margins: how sure Moses was of its choices, by the ids of sentences.
        source: n lines.
        references: of each set of references n lines, filtered.
        systems: of each system n lines, filtered, by its name.
        train_target: a text, in which words are counted.
        filters: what is done to that text before.
    """
    table = depths.table()
    if not references:
        return Analysis(depths.sentences, table, None)
    before, after = systems.values()
    of_lines = statistics(references, systems)
    wanted = vocabulary([*references, before, after])
    counts = count_words((filters(line) for line in with_bar("count words", input_lines(train_target))), wanted)
    judged = Judged(
        gains=find_gains(*of_lines.values()),
        lengths=by_length(source, of_lines),
        margins=by_margin(margins, of_lines),
        words=by_frequency(counts, references, systems),
        ngrams=ngram_changes(references, before, after),
    )
    return Analysis(depths.sentences, table, judged)
