"""Statistics of the list and the choices of a set, for reports.

The analysis of words by their frequency in the training corpus follows compare-mt (Neubig et al. 2019).
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
from moses_io.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.report.breakdown import Bin, Depth, Depths, by_length, by_margin, statistics

BOUNDS = (0, 1, 2, 5, 10, 100, 1000)
"""Lower bounds of the frequency bins."""


@dataclass(frozen=True)
class Frequency:
    """Words with similar counts in the training text.

    Attributes:
        lower: smallest count.
        upper: largest count, None if there is no bound.
        words: number of words in the references.
        scores: F1 of these words by system, 0 to 100.
    """

    lower: int
    upper: int | None
    words: int
    scores: dict[str, float]

    @property
    def name(self) -> str:
        """The range of counts, such as `2-4`."""
        if self.upper is None:
            return f"{self.lower}+"
        return str(self.lower) if self.lower == self.upper else f"{self.lower}-{self.upper}"


def vocabulary(texts: Iterable[Sequence[str]]) -> set[str]:
    """Return all words of some texts."""
    return {word for lines in texts for line in lines for word in tokens(line)}


def count_words(lines: Iterable[str], wanted: set[str]) -> Counter[str]:
    """Count the wanted words of a text."""
    return Counter(word for line in lines for word in tokens(line) if word in wanted)


def by_frequency(
    counts: Mapping[str, int], references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]
) -> list[Frequency]:
    """Return bins of words by frequency in the training text, rarest first, without bins that have no reference words.

    A word is correct at most as often as it occurs in the reference of the sentence. With several references, each one
    is compared separately, without missing ones.

    Args:
        counts: counts of words in the training text. A word that is not in it has count 0.
        references: sets of references, each with n lines.
        systems: n lines of each system, by its name.
    """
    pairs = [
        (sentence, line)
        for sentence, lines in enumerate(zip(*references, strict=True))
        for line in without_missing(lines)
    ]
    reference_lines = [line for _, line in pairs]
    translations = {name: [lines[sentence] for sentence, _ in pairs] for name, lines in systems.items()}
    expected = _binned(counts, reference_lines)
    found = {name: _binned(counts, lines) for name, lines in translations.items()}
    correct = {name: _binned(counts, lines, reference_lines) for name, lines in translations.items()}
    bins = []
    for lower, after in pairwise([*BOUNDS, 0]):
        if words := expected[lower]:
            totals = {name: words + found[name][lower] for name in systems}
            scores = {name: 200 * correct[name][lower] / totals[name] for name in systems}
            bins.append(Frequency(lower, after - 1 if after else None, words, scores))
    return bins


def _binned(counts: Mapping[str, int], lines: Sequence[str], others: Sequence[str] | None = None) -> Counter[int]:
    """Count the words of lines by the lower bounds of their bins. With other lines, count the words that both share."""
    binned = Counter[int]()
    for line, other in zip(lines, others or lines, strict=True):
        for word, count in (Counter(tokens(line)) & Counter(tokens(other))).items():
            binned[max(bound for bound in BOUNDS if bound <= counts.get(word, 0))] += count
    return binned


MAX_NGRAMS = 10


@dataclass(frozen=True)
class Matched:
    """An n-gram with its matches.

    Attributes:
        ngram: its tokens, with spaces between them.
        before: matches with references before reranking.
        after: matches with references after reranking.
        sentence: id of an example.
    """

    ngram: str
    before: int
    after: int
    sentence: int


@dataclass(frozen=True)
class NgramChanges:
    """N-grams whose matches changed most.

    Attributes:
        sentences: number of sentences.
        won: n-grams whose matches rose most.
        lost: n-grams whose matches fell most.
    """

    sentences: int
    won: tuple[Matched, ...]
    lost: tuple[Matched, ...]


def ngram_changes(references: Sequence[Sequence[str]], before: Sequence[str], after: Sequence[str]) -> NgramChanges:
    """Return the n-grams of 1 to 4 words whose clipped matches rose and fell most, at most `MAX_NGRAMS` each.

    On a tie the longer n-gram comes first. The example is the first sentence with more (or fewer) matches after than
    before.

    Args:
        references: sets of references, each with n lines.
        before: n lines.
        after: n lines, after reranking.
    """
    old, new = Ngrams(), Ngrams()
    rises: dict[Ngram, int] = {}
    falls: dict[Ngram, int] = {}
    for sentence, (one, other, *sentence_references) in enumerate(zip(before, after, *references, strict=True)):
        max_counts = Ngrams()
        for reference in without_missing(sentence_references):
            max_counts |= count_ngrams(tokens(reference))
        matches_before, matches_after = (count_ngrams(tokens(line)) & max_counts for line in (one, other))
        old.update(matches_before)
        new.update(matches_after)
        for ngram in matches_after - matches_before:
            rises.setdefault(ngram, sentence)
        for ngram in matches_before - matches_after:
            falls.setdefault(ngram, sentence)
    return NgramChanges(len(before), won=_first(old, new, rises, 1), lost=_first(old, new, falls, -1))


def _first(old: Ngrams, new: Ngrams, examples: dict[Ngram, int], sign: int) -> tuple[Matched, ...]:
    """Return the n-grams whose matches rose most (sign 1) or fell most (sign -1)."""
    changed = [ngram for ngram in examples if sign * (new[ngram] - old[ngram]) > 0]
    changed.sort(key=lambda ngram: (-abs(new[ngram] - old[ngram]), -len(ngram), ngram))
    return tuple(Matched(" ".join(ngram), old[ngram], new[ngram], examples[ngram]) for ngram in changed[:MAX_NGRAMS])


BIN_WIDTH = 10
"""Width of a bin of differences, in points of sentence BLEU."""


@dataclass(frozen=True)
class Gains:
    """Histogram of differences in smoothed sentence BLEU, after minus before.

    Attributes:
        lower: lower bounds of the bins, which are `BIN_WIDTH` wide, from -100.
        counts: sentences per bin, without sentences whose BLEU did not change.
        rose: total of sentences whose BLEU rose.
        fell: total of sentences whose BLEU fell.
        stayed: total of sentences whose BLEU did not change.
    """

    lower: tuple[int, ...]
    counts: tuple[int, ...]
    rose: int
    fell: int
    stayed: int


def find_gains(before: Array, after: Array) -> Gains:
    """Return the histogram of gains of n sentences, from their (n, 9) BLEU statistics before and after."""
    smoothed = Metric("bleu").formula.smoothed
    differences = 100 * np.round(smoothed(after) - smoothed(before), DECIMALS)  # (n,)
    changed = differences[differences != 0]  # (changed,)
    edges = np.arange(-100, 101, BIN_WIDTH)
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
    """The parts of an analysis that need references.

    Attributes:
        gains: gains in sentence BLEU.
        lengths: BLEU by source length.
        margins: BLEU by Moses' margin.
        words: F1 of words by their frequency in training.
        ngrams: n-grams won and lost.
    """

    gains: Gains
    lengths: list[Bin]
    margins: list[Bin]
    words: list[Frequency]
    ngrams: NgramChanges


@dataclass(frozen=True)
class Analysis:
    """Analysis of a list and of the choices before and after reranking.

    Attributes:
        sentences: number of sentences of the list.
        depths: results by depth of the list.
        judged: results that need references, None without references.
    """

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
    """Analyse a list and the lines of two systems, before and after reranking.

    Args:
        depths: choices among the first candidates of the list.
        margins: Moses' margin by sentence id, see `rerank.report.breakdown.margin`.
        source: n lines.
        references: sets of references, each with n filtered lines.
        systems: n filtered lines of each of the two systems, by its name.
        train_target: file in which words are counted.
        filters: filters for that file.
    """
    table = depths.table()
    if not references:
        return Analysis(depths.sentences, table, None)
    before, after = systems.values()
    line_statistics = statistics(references, systems)
    wanted = vocabulary([*references, before, after])
    counts = count_words((filters(line) for line in with_bar("count words", input_lines(train_target))), wanted)
    judged = Judged(
        gains=find_gains(*line_statistics.values()),
        lengths=by_length(source, line_statistics),
        margins=by_margin(margins, line_statistics),
        words=by_frequency(counts, references, systems),
        ngrams=ngram_changes(references, before, after),
    )
    return Analysis(depths.sentences, table, judged)
