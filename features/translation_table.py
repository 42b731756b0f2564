"""Lexical translation tables p(word|word of the other side).

Tables are read from a file, estimated from a parallel corpus, or counted from word alignments.
"""

import collections
from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

import numpy as np

from features.progress import progress_bar
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, number, tokens, without_line_end

ITERATIONS = 5
LARGEST_PROBABILITY = 1.001
"""Largest value accepted as a probability. Rounded values in tables may exceed 1."""
NULL = "NULL"
"""Empty word, from which words without a counterpart are generated, as written in Moses' tables."""

Word = TypeVar("Word", bound=Hashable)
TextPair = tuple[Sequence[Word], Sequence[Word]]
"""Words of a sentence and of its translation."""
Table = dict[Word, dict[Word, float]]
"""Probabilities by condition, then by predicted word."""


def read_table(path: str) -> Table[str]:
    """Read a table in the format of Moses' `lex.f2e`: lines `word condition p(word|condition)`.

    Raises:
        InputError: a line has another format, a value is not a probability, or the file has no lines.
    """
    table: Table[str] = collections.defaultdict(dict)
    for line, raw in numbered_lines(path):
        text = decode(without_line_end(raw))
        parts = tokens(text)
        value = number(parts[2]) if len(parts) == 3 else None
        if value is None:
            raise InputError(f"{name_of(path)}:{line}: expected 'word word probability', found {shown(text)}")
        if not 0 <= value <= LARGEST_PROBABILITY:
            hint = ". Is this a table of log-probabilities?" if value < 0 else ""
            raise InputError(f"{name_of(path)}:{line}: expected a probability from 0 to 1, found {parts[2]}{hint}")
        table[parts[1]][parts[0]] = value
    if not table:
        raise InputError(f"{name_of(path)}: the table is empty, expected lines 'word word probability'")
    return table


def estimate(pairs: Sequence[TextPair[Word]], null: Word) -> Table[Word]:
    """Estimate p(target word|source word) with IBM model 1 (Brown et al. 1993), starting from uniform probabilities.

    Runs `ITERATIONS` iterations of EM over all links of the corpus as one array.

    Args:
        pairs: sentences and their translations.
        null: empty word, which is added to each source sentence. It generates target words without a counterpart.
    """
    known: tuple[dict[Word, int], dict[Word, int]] = ({null: 0}, {})
    numbered = []
    for left, right in pairs:
        sides = zip(known, ((null, *left), right), strict=True)
        numbered.append([np.array([side.setdefault(word, len(side)) for word in text]) for side, text in sides])
    size = len(known[1])
    # One integer key for each (source word, target word) of each pair, ordered by target position. All keys of a
    # target word are adjacent, so that `reduceat` can normalize them. `places` is the index of each distinct key.
    keys = np.concatenate([np.add.outer(left * size, right).T.ravel() for left, right in numbered if len(right)])
    links, places = np.unique(keys, return_inverse=True)
    lengths = np.concatenate([np.full(len(right), len(left)) for left, right in numbered if len(right)])  # (targets,)
    starts, probability = np.concatenate([[0], np.cumsum(lengths)[:-1]]), np.ones(len(links))
    with progress_bar("IBM model 1", ITERATIONS) as bar:
        for _ in range(ITERATIONS):
            share = probability[places]  # (keys,)
            share /= np.repeat(np.add.reduceat(share, starts), lengths)
            counts = np.bincount(places, weights=share, minlength=len(links))  # (links,)
            probability = counts / np.bincount(links // size, weights=counts)[links // size]
            bar.advance(1, "")
    names = [list(side) for side in known]
    table: Table[Word] = collections.defaultdict(dict)
    for link, value in zip(links.tolist(), probability.tolist(), strict=True):
        table[names[0][link // size]][names[1][link % size]] = value
    return dict(table)


def count(pairs: Sequence[TextPair[Word]], links: Sequence[Collection[tuple[int, int]]], null: Word) -> Table[Word]:
    """Return p(target word|source word) by relative frequency of links, as in Moses' `lex.f2e`.

    p = links of both words / links of the source word. A word without a link is linked to `null` on the other side, so
    that `null` is both a condition and a predicted word.

    Args:
        pairs: sentences and their translations.
        links: links (source index, target index) of each pair, from 0.
        null: empty word.
    """
    counts: collections.Counter[tuple[Word, Word]] = collections.Counter()
    for (left, right), of_pair in zip(pairs, links, strict=True):
        counts.update((left[i], right[j]) for i, j in of_pair)
        sources, targets = {i for i, _ in of_pair}, {j for _, j in of_pair}
        counts.update((word, null) for i, word in enumerate(left) if i not in sources)
        counts.update((null, word) for j, word in enumerate(right) if j not in targets)
    totals: collections.Counter[Word] = collections.Counter()
    for (condition, _), times in counts.items():
        totals[condition] += times
    table: Table[Word] = collections.defaultdict(dict)
    for (condition, word), times in counts.items():
        table[condition][word] = times / totals[condition]
    return dict(table)
