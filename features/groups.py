"""Groups of sentences that models read in one batch.

Groups depend on the n-best list only, so that a score does not depend on the machine. Sources of similar length are
grouped. The memory for a group grows with candidates · source positions · target positions, because the rows of
attention are padded to the longest candidate. If a single sentence is too large, its candidates are split over several
groups, unless a feature needs whole lists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from features.arrays import Integers
from features.feature import Sentence

CELLS = 2**25
"""Maximum attention weights of a group, counted in words. A single candidate with more forms its own group."""
POSITIONS = 2**15
"""Maximum source positions of a group with padding. A single source with more forms its own group."""


class Group(NamedTuple):
    """Sentences with all or some of their candidates."""

    sentences: list[Sentence]
    indices: Integers  # (N,) indices of the candidates among all candidates


def groups(sentences: Sequence[Sentence], size: int, whole: bool = False) -> Iterator[Group]:
    """Yield groups that together contain each candidate once.

    Args:
        sentences: sentences with their candidates.
        size: maximum number of candidates in a group of several sentences. A group that is one sentence, or part of
            one, may have more.
        whole: whether all candidates of a sentence are in one group, however large it is.
    """
    parts = sorted(_parts(sentences, whole), key=lambda part: len(part.sentences[0].source))
    pending: list[Group] = []
    count = longest = 0
    for part in parts:
        (sentence,) = part.sentences
        count, longest = count + len(part.indices), max(longest, _longest(sentence))
        # Sentences are sorted by source length, so this source is the longest of the group.
        positions = (len(pending) + 1) * (len(sentence.source) + 2)
        if pending and (count > size or positions > POSITIONS or count * _cells(sentence, longest) > CELLS):
            yield _joined(pending)
            pending = []
            count = len(part.indices)
            longest = _longest(sentence)
        pending.append(part)
    if pending:
        yield _joined(pending)


def _parts(sentences: Sequence[Sentence], whole: bool) -> Iterator[Group]:
    """Yield each sentence as a group, or as several groups if it is too large and `whole` is false."""
    start = 0
    for each in sentences:
        count = len(each.hypotheses)
        size = max(1, count if whole else CELLS // _cells(each, _longest(each)))
        for first in range(0, count, size):
            part = slice(first, first + size)
            cut = replace(each, hypotheses=each.hypotheses[part], lines=each.lines[part]) if count > size else each
            yield Group([cut], np.arange(start, start + count)[part])  # (N,)
        start += count


def _joined(parts: Sequence[Group]) -> Group:
    indices = np.concatenate([part.indices for part in parts])  # (N,)
    return Group([sentence for part in parts for sentence in part.sentences], indices)


def _longest(sentence: Sentence) -> int:
    return max(map(len, sentence.hypotheses), default=0)


def _cells(sentence: Sentence, longest: int) -> int:
    return (len(sentence.source) + 2) * (longest + 2)
