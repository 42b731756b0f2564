"""How well systems get words right, by how often the training text has them (compare-mt: Neubig et al. 2019)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from moses_io.text import tokens, without_missing

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
