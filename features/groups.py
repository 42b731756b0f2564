"""Sentences cut into groups that models read at once, by the list alone: a score does not depend on the machine.

Sources of similar length go together. What a model holds of a group grows with candidates, source positions and target
positions multiplied: its rows of attention, padded to the longest. A sentence whose candidates alone are more than that
is cut between them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from features.arrays import Integers
from features.feature import Sentence

CELLS = 2**25
"""Numbers that the rows of attention of a group may have, in words; a single candidate with more is a group."""
POSITIONS = 2**15
"""Source positions of a group, which are encoded at once, with their padding; a single source with more is a group."""


class Group(NamedTuple):
    """Sentences, some perhaps with a part of their candidates only."""

    sentences: list[Sentence]
    places: Integers  # (N,) of their candidates among those of all sentences


def groups(sentences: Sequence[Sentence], size: int) -> Iterator[Group]:
    """Yield groups, with `size` candidates of several sentences at most, which together have each candidate once."""
    parts = sorted(_parts(sentences), key=lambda part: len(part.sentences[0].source))
    held: list[Group] = []
    count = longest = 0
    for part in parts:
        (sentence,) = part.sentences
        count, longest = count + len(part.places), max(longest, _longest(sentence))
        positions = (len(held) + 1) * (len(sentence.source) + 2)
        if held and (count > size or positions > POSITIONS or count * _cells(sentence, longest) > CELLS):
            yield _joined(held)
            held, count, longest = [], len(part.places), _longest(sentence)
        held.append(part)
    if held:
        yield _joined(held)


def _parts(sentences: Sequence[Sentence]) -> Iterator[Group]:
    """Yield each sentence, or the parts of one that is too large."""
    start = 0
    for each in sentences:
        count = len(each.hypotheses)
        size = max(1, CELLS // _cells(each, _longest(each)))
        for first in range(0, count, size):
            part = slice(first, first + size)
            cut = replace(each, hypotheses=each.hypotheses[part], lines=each.lines[part]) if count > size else each
            yield Group([cut], np.arange(start, start + count)[part])  # (N,)
        start += count


def _joined(parts: Sequence[Group]) -> Group:
    places = np.concatenate([part.places for part in parts])  # (N,)
    return Group([sentence for part in parts for sentence in part.sentences], places)


def _longest(sentence: Sentence) -> int:
    return max(map(len, sentence.hypotheses), default=0)


def _cells(sentence: Sentence, longest: int) -> int:
    return (len(sentence.source) + 2) * (longest + 2)
