"""BLEU of parts of a set: by source length, by Moses' margin, and by list size.

BLEU is computed from statistics of single lines, with the smoothing of the tables of systems.
"""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from features.arrays import Array, Integers
from moses_io.files.text import tokens
from moses_io.nbest import SentenceList
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.report.listed import Listed, lists_containing

MIN_SENTENCES = 20
"""Minimum number of sentences per bin, if the set has as many."""
MAX_BINS = 8
"""Maximum number of bins."""


def statistics(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Return, by system, the (n, 9) BLEU statistics of n lines. All text is already filtered.

    Raises:
        ValueError: references and systems differ in their number of lines.
    """
    bleu = Metric("bleu")
    rows: dict[str, list[list[float]]] = {name: [] for name in systems}
    for *sentence_references, system_lines in zip(*references, zip(*systems.values(), strict=True), strict=True):
        count = bleu.counter(sentence_references)
        for name, line in zip(systems, system_lines, strict=True):
            rows[name].append(count(line))
    return {name: np.array(lines, dtype=np.float64) for name, lines in rows.items()}  # each (n, 9)


def corpus_bleu(total: Array) -> float:
    """Return BLEU, 0 to 100, of summed statistics (9,). An order without matches is smoothed like in sacreBLEU."""
    *counts, reference_length = (int(value) for value in total)
    correct, candidates = counts[::2], counts[1::2]
    bleu = BLEU.compute_bleu(correct, candidates, candidates[0], reference_length, smooth_method="exp")
    return float(bleu.score)


@dataclass(frozen=True)
class Bin:
    """Sentences with similar source length or similar margin.

    Attributes:
        lower: tokens of the shortest source, or smallest margin.
        upper: tokens of the longest source, or largest margin.
        sentences: number of sentences.
        scores: corpus BLEU of these sentences by system, 0 to 100.
    """

    lower: float
    upper: float
    sentences: int
    scores: dict[str, float]

    @property
    def span(self) -> str:
        """The range of lengths in tokens, such as `5-7`."""
        return f"{self.lower}" if self.lower == self.upper else f"{self.lower}-{self.upper}"


def by_length(source: Sequence[str], systems: Mapping[str, Array]) -> list[Bin]:
    """Return bins of about equal size by source length, shortest first.

    Each bin has at least `MIN_SENTENCES` sentences. A set with fewer than twice `MIN_SENTENCES` sentences has a single
    bin. Sentences of equal length are in one bin.

    Args:
        source: n sentences, tokenized.
        systems: (n, 9) BLEU statistics of the lines of each system, by its name.
    """
    lengths = np.array([len(tokens(line)) for line in source])  # (n,)
    return [
        _bin(lower, upper, np.flatnonzero((lengths >= lower) & (lengths <= upper)), systems)
        for lower, upper in _bounds(Counter(lengths.tolist()))
    ]


def _bin(lower: float, upper: float, lines: Integers, systems: Mapping[str, Array]) -> Bin:
    """Return the bin of some lines, given by their indices."""
    scores = {name: corpus_bleu(rows[lines].sum(axis=0)) for name, rows in systems.items()}
    return Bin(lower=lower, upper=upper, sentences=len(lines), scores=scores)


def _bounds(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return shortest and longest length of each bin, from the number of sentences of each length."""
    enough = max(MIN_SENTENCES, math.ceil(sum(counts.values()) / MAX_BINS))
    ordered, starts, filled = sorted(counts), list[int](), enough
    for index, length in enumerate(ordered):
        if filled >= enough:
            starts.append(index)
            filled = 0
        filled += counts[length]
    if len(starts) > 1 and filled < MIN_SENTENCES:  # the last bin joins the one before
        starts.pop()
    return [(ordered[start], ordered[end - 1]) for start, end in pairwise([*starts, len(ordered)])]


QUARTERS = ("lowest", "low", "high", "highest")
"""Names of the quarters, in order."""


def by_margin(margins: Mapping[int, float], systems: Mapping[str, Array]) -> list[Bin]:
    """Return quarters of the sentences that have a margin, smallest margins first.

    The result is empty if all margins are equal, or if there are fewer than four sentences.

    Args:
        margins: margin of some sentences, by sentence id, see `margin`.
        systems: (lines, 9) BLEU statistics of each system, by its name.
    """
    ids, values = np.array(list(margins)), np.array(list(margins.values()))  # (n,), (n,)
    if len(values) < len(QUARTERS) or values.min() == values.max():
        return []
    order = np.argsort(values, kind="stable")  # (n,)
    return [
        _bin(float(values[part[0]]), float(values[part[-1]]), ids[part], systems)
        for part in np.array_split(order, len(QUARTERS))
    ]


def margin(candidates: SentenceList, lists: Sequence[str]) -> float | None:
    """Return by how much the total of Moses' choice exceeds the highest total of a candidate with another text.

    It is negative if Moses did not choose by total. It is None if there is no other text, the list has no totals, or
    Moses' output is not among the candidates. Candidates that a merged list has from later lists have no totals of
    their own. So, in a merged list, only candidates with the same first list as Moses' choice are compared.
    """
    if candidates.moses_choice is None:
        return None
    first = candidates.hypotheses[candidates.moses_choice]
    origin = lists_containing(first, lists)[:1]
    others = [each for each in candidates.hypotheses if each.text != first.text]
    totals = [each.total for each in others if lists_containing(each, lists)[:1] == origin]
    known = [total for total in totals if total is not None]
    return None if first.total is None or not known else first.total - max(known)


STEPS = np.array([*(step * 10**power for power in range(7) for step in (1, 2, 5)), sys.maxsize])
"""Depths: numbers of candidates from the start of each list, and at last all candidates."""


@dataclass(frozen=True)
class Depth:
    """Results for the first candidates of each sentence, in the order of the list.

    Attributes:
        candidates: maximum number of candidates per sentence.
        reranked: BLEU, 0 to 100, of the candidates that the weights choose among them. None without references.
        oracle: BLEU of the oracle: the candidates with the highest smoothed sentence BLEU. None without references.
        deeper: fraction of the sentences, 0 to 1, for which the weights choose a candidate further down in the full
            list.
    """

    candidates: int
    reranked: float | None
    oracle: float | None
    deeper: float


class Depths:
    """Collects results for the first 1, 2, 5, 10, 20, 50, … candidates, and for all, one sentence at a time.

    Args:
        references: sets of references, if any, with one line per sentence.
    """

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self._references = references
        self._sentences: set[int] = set()
        self._longest = 0
        self._choice, self._best = np.zeros((2, len(STEPS), BLEU_SIZE))  # each (steps, 9)
        self._deeper = np.zeros(len(STEPS))  # (steps,) sentences

    @property
    def sentences(self) -> int:
        """Number of sentences added."""
        return len(self._sentences)

    def add(self, listed: Listed, scores: Array) -> None:
        """Add a sentence.

        Args:
            listed: the N candidates, with their statistics if there are references.
            scores: (N,) scores of the linear model.
        """
        self._sentences.add(listed.candidates.sentence)
        self._longest = max(self._longest, len(scores))
        last = np.minimum(STEPS, len(scores)) - 1  # (steps,)
        choice = _leading(scores)[last]  # (steps,)
        self._deeper += choice != choice[-1]
        if listed.judged:
            self._choice += listed.judged.statistics[choice]  # (steps, 9)
            self._best += listed.judged.statistics[_leading(listed.judged.quality)[last]]  # (steps, 9)

    def table(self) -> list[Depth]:
        """Return one row per depth, up to the longest list. A sentence without candidates counts as an empty line."""
        missing = self._missing()
        rows = [index for index, step in enumerate(STEPS[:-1]) if step < self._longest]
        return [
            Depth(
                candidates=min(int(STEPS[index]), self._longest),
                reranked=corpus_bleu(self._choice[index] + missing) if self._references else None,
                oracle=corpus_bleu(self._best[index] + missing) if self._references else None,
                deeper=float(self._deeper[index] / self.sentences),
            )
            for index in [*rows, -1]
        ]

    def _missing(self) -> Array:
        """(9,) BLEU statistics of empty lines for the sentences without candidates."""
        bleu, size = Metric("bleu"), len(self._references[0]) if self._references else 0
        references_by_sentence = [
            [lines[each] for lines in self._references] for each in range(size) if each not in self._sentences
        ]
        rows = [bleu.counter(each)("") for each in references_by_sentence]
        missing: Array = np.array(rows, dtype=np.float64).reshape(-1, BLEU_SIZE).sum(axis=0)  # (9,)
        return missing


def _leading(values: Array) -> Integers:
    """(N,) index of the highest of the first 1, 2, … values. On a tie the first one wins."""
    # Where a value exceeds the running maximum, its index is new. `maximum.accumulate` repeats it up to the next one.
    rises = np.append(True, values[1:] > np.maximum.accumulate(values)[:-1])  # (N,)
    return np.maximum.accumulate(np.where(rises, np.arange(len(values)), 0))  # (N,)
