"""Sentences whose translation changed, and what each feature had to say about it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList, read_nbest
from moses_io.weights import Weights, weighted
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric


@dataclass(frozen=True)
class Change:
    """One sentence whose translation changed, with its first reference.

    `gain` is the smoothed sentence BLEU after minus before, -1 … 1; `reasons` are, by feature, its weighted part of the
    model score after minus before, most against the change last.
    """

    sentence: int
    source: str
    reference: str
    before: str
    after: str
    gain: float
    reasons: tuple[tuple[str, float], ...]


def find_changes(
    nbest: str,
    weights: Weights,
    source: Sequence[str],
    references: Sequence[Sequence[str]],
    before: Sequence[str],
    after: Sequence[str],
    filters: Filters,
) -> list[Change]:
    """Return the sentences of a scored list whose line differs, the largest gain in sentence BLEU first.

    References have gone through the filters already.
    """
    bleu, changes = Metric("bleu"), []
    for sentence_list in read_nbest(nbest):
        number = sentence_list.sentence
        if before[number] == after[number]:
            continue
        count = bleu.counter([lines[number] for lines in references])
        new, old = bleu.formula.smoothed(np.array([count(filters(text[number])) for text in (after, before)])).tolist()
        reasons = _reasons(sentence_list, weights, before[number], after[number])
        changes.append(
            Change(number, source[number], references[0][number], before[number], after[number], new - old, reasons)
        )
    return sorted(changes, key=lambda change: (-change.gain, change.sentence))


def _reasons(sentence_list: SentenceList, weights: Weights, before: str, after: str) -> tuple[tuple[str, float], ...]:
    first = {hypothesis.text: hypothesis for hypothesis in reversed(sentence_list.hypotheses)}
    if before not in first or after not in first:
        return ()
    old, new = _parts(first[before], weights), _parts(first[after], weights)
    differences = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new}
    return tuple(sorted(differences.items(), key=lambda item: -item[1]))


def _parts(hypothesis: Hypothesis, weights: Weights) -> dict[str, float]:
    """Weighted value of each feature; all sparse ones together under one name."""
    parts = weighted(hypothesis, weights)
    sparse = [parts.pop(name) for name in hypothesis.sparse]
    return parts | ({"sparse": sum(sparse)} if sparse else {})
