"""BLEU of parts of a set: by the length of the source, by how sure Moses was, and by the depth of the list.

BLEU is that of tables of systems, smoothing included, from statistics of single lines.
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
from rerank.metrics.metric import STATISTICS, Metric
from rerank.report.listed import Listed, having

FEWEST = 20
"""Sentences of a bin, at least, where there are as many."""
MOST = 8
"""Bins, at most."""


def statistics(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Return the (n, 9) statistics of BLEU of n lines of each system, by its name; all text has been filtered.

    Raises:
        ValueError: references or systems do not have n lines.
    """
    bleu = Metric("bleu")
    rows: dict[str, list[list[float]]] = {name: [] for name in systems}
    for *answers, own in zip(*references, zip(*systems.values(), strict=True), strict=True):
        count = bleu.counter(answers)
        for name, line in zip(systems, own, strict=True):
            rows[name].append(count(line))
    return {name: np.array(lines, dtype=np.float64) for name, lines in rows.items()}  # each (n, 9)


def corpus_bleu(total: Array) -> float:
    """Return BLEU, 0 to 100, of summed statistics (9,); an order without matches is smoothed as sacreBLEU does."""
    *counts, reference_length = (int(value) for value in total)
    correct, candidates = counts[::2], counts[1::2]
    bleu = BLEU.compute_bleu(correct, candidates, candidates[0], reference_length, smooth_method="exp")
    return float(bleu.score)


@dataclass(frozen=True)
class Bin:
    """Sentences whose sources are about as long, or of whose choices Moses was about as sure.

    Attributes:
        lower: tokens of the shortest source, or the least margin.
        upper: and the most.
        sentences: how many.
        scores: by system, BLEU of these sentences as a corpus, 0 to 100.
    """

    lower: float
    upper: float
    sentences: int
    scores: dict[str, float]

    @property
    def span(self) -> str:
        """The lengths in words, such as `5-7`."""
        return f"{self.lower}" if self.lower == self.upper else f"{self.lower}-{self.upper}"


def by_length(source: Sequence[str], systems: Mapping[str, Array]) -> list[Bin]:
    """Return, from short to long, bins of about equally many sentences, each `FEWEST` at least.

    Sentences of one length are in one bin; a set of fewer than twice `FEWEST` sentences has a single one.

    Args:
        source: n sentences, as tokens with spaces between.
        systems: of each system the (n, 9) statistics of BLEU of its lines, by its name.
    """
    lengths = np.array([len(tokens(line)) for line in source])  # (n,)
    return [
        _bin(lower, upper, np.flatnonzero((lengths >= lower) & (lengths <= upper)), systems)
        for lower, upper in _bounds(Counter(lengths.tolist()))
    ]


def _bin(lower: float, upper: float, lines: Integers, systems: Mapping[str, Array]) -> Bin:
    """Return some lines, by their numbers, as a bin."""
    scores = {name: corpus_bleu(rows[lines].sum(axis=0)) for name, rows in systems.items()}
    return Bin(lower=lower, upper=upper, sentences=len(lines), scores=scores)


def _bounds(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the shortest and the longest length of each bin, where `counts` says how many sentences a length has."""
    enough = max(FEWEST, math.ceil(sum(counts.values()) / MOST))
    ordered, starts, filled = sorted(counts), list[int](), enough
    for place, length in enumerate(ordered):
        if filled >= enough:
            starts.append(place)
            filled = 0
        filled += counts[length]
    if len(starts) > 1 and filled < FEWEST:
        starts.pop()
    return [(ordered[start], ordered[end - 1]) for start, end in pairwise([*starts, len(ordered)])]


QUARTERS = ("least sure", "less sure", "surer", "surest")
"""What they are called, in order."""


def by_margin(margins: Mapping[int, float], systems: Mapping[str, Array]) -> list[Bin]:
    """Return quarters of the sentences that have a margin, least sure first.

    There are none where all margins are equal, or sentences are fewer than quarters.

    Args:
        margins: of some sentences, by their ids; see `margin`.
        systems: of each system the (lines, 9) statistics of BLEU, by its name.
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
    """Return by how much the total of the decoder's choice is above the highest one of another text.

    It is below 0 if the decoder did not choose by total. There is none where there is no other text, the list has no
    totals, or the decoder's output is not among the candidates. Of a merged list only the candidates count
    that the first of its lists has which knows the sentence: the others have no totals of their own.
    """
    if candidates.moses_choice is None:
        return None
    first = candidates.hypotheses[candidates.moses_choice]
    origin = having(first, lists)[:1]
    others = [each for each in candidates.hypotheses if each.text != first.text]
    totals = [each.total for each in others if having(each, lists)[:1] == origin]
    known = [total for total in totals if total is not None]
    return None if first.total is None or not known else first.total - max(known)


STEPS = np.array([*(step * 10**power for power in range(7) for step in (1, 2, 5)), sys.maxsize])
"""How many of the first candidates are looked at; at last at all."""


@dataclass(frozen=True)
class Depth:
    """The first candidates of each sentence, in the order of the list.

    Attributes:
        candidates: how many, at most.
        choice: BLEU, 0 to 100, of what the weights choose among them; None without references.
        best: that of those with the highest smoothed sentence BLEU.
        deeper: share of the sentences, 0 to 1, for which the weights choose another one that lies deeper.
    """

    candidates: int
    choice: float | None
    best: float | None
    deeper: float


class Depths:
    """Looks at the first 1, 2, 5, 10, 20, 50, … candidates of one sentence after the other, at last at all.

    Args:
        references: of each set of references a line a sentence; perhaps none.
    """

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self._references = references
        self._sentences: set[int] = set()
        self._longest = 0
        self._choice, self._best = np.zeros((2, len(STEPS), STATISTICS))  # each (steps, 9)
        self._deeper = np.zeros(len(STEPS))  # (steps,) sentences

    @property
    def sentences(self) -> int:
        """How many were added."""
        return len(self._sentences)

    def add(self, listed: Listed, scores: Array) -> None:
        """Add a sentence, whose candidates have these (N,) scores by the linear model."""
        self._sentences.add(listed.candidates.sentence)
        self._longest = max(self._longest, len(scores))
        last = np.minimum(STEPS, len(scores)) - 1  # (steps,)
        choice = _leading(scores)[last]  # (steps,)
        self._deeper += choice != choice[-1]
        if listed.judged:
            self._choice += listed.judged.statistics[choice]  # (steps, 9)
            self._best += listed.judged.statistics[_leading(listed.judged.quality)[last]]  # (steps, 9)

    def table(self) -> list[Depth]:
        """Return a row a step, up to the longest list; a sentence without candidates has an empty line."""
        missing = self._missing()
        rows = [place for place, step in enumerate(STEPS[:-1]) if step < self._longest]
        return [
            Depth(
                candidates=min(int(STEPS[place]), self._longest),
                choice=corpus_bleu(self._choice[place] + missing) if self._references else None,
                best=corpus_bleu(self._best[place] + missing) if self._references else None,
                deeper=float(self._deeper[place] / self.sentences),
            )
            for place in [*rows, -1]
        ]

    def _missing(self) -> Array:
        """(9,) statistics of BLEU of the empty lines."""
        bleu, size = Metric("bleu"), len(self._references[0]) if self._references else 0
        answers = [[lines[each] for lines in self._references] for each in range(size) if each not in self._sentences]
        rows = [bleu.counter(each)("") for each in answers]
        missing: Array = np.array(rows, dtype=np.float64).reshape(-1, STATISTICS).sum(axis=0)  # (9,)
        return missing


def _leading(values: Array) -> Integers:
    """(N,) the place of the highest of the first 1, 2, … values; of equal ones the first."""
    rises = np.append(True, values[1:] > np.maximum.accumulate(values)[:-1])  # (N,)
    return np.maximum.accumulate(np.where(rises, np.arange(len(values)), 0))  # (N,)
