"""Lexical translation tables p(word|word of the other side).

Tables are read from a file, estimated from a parallel corpus, or counted from word alignments.
"""

import collections
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from features.arrays import Array, Integers
from features.links import word_indices
from features.progress import progress_bar
from features.ragged import Ragged
from features.sentences import TokenPairs
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, number, without_line_end, words

ITERATIONS = 5
MAX_PROBABILITY = 1.001
"""Largest value accepted as a probability. Rounded values in tables may exceed 1."""
NULL = "NULL"
"""Empty word, from which words without a counterpart are generated, as written in Moses' tables."""

ESTIMATED, COUNTED = 2**12, 2**16
"""Number of pairs whose links are collected together in `estimate` and in `count`."""

Table = dict[str, dict[str, float]]
"""Probabilities by condition, then by predicted word."""


class Translations(NamedTuple):
    """Probabilities p(word|condition) of E entries, in the order of conditions, then words."""

    conditions: Integers  # (E,) word ids
    words: Integers  # (E,) word ids
    probabilities: Array  # (E,)


def read_table(path: str) -> Table:
    """Read a table in the format of Moses' `lex.f2e`: lines `word condition p(word|condition)`.

    Raises:
        InputError: a line has another format, a value is not a probability, or the file has no lines.
    """
    table: Table = collections.defaultdict(dict)
    for line, raw in numbered_lines(path):
        text = decode(without_line_end(raw))
        parts = words(text)
        value = number(parts[2]) if len(parts) == 3 else None
        if value is None:
            raise InputError(f"{name_of(path)}:{line}: expected 'word word probability', found {shown(text)}")
        if not 0 <= value <= MAX_PROBABILITY:
            hint = ". Is this a table of log-probabilities?" if value < 0 else ""
            raise InputError(f"{name_of(path)}:{line}: expected a probability from 0 to 1, found {parts[2]}{hint}")
        table[parts[1]][parts[0]] = value
    if not table:
        raise InputError(f"{name_of(path)}: the table is empty, expected lines 'word word probability'")
    return table


def estimate_words(pairs: TokenPairs) -> Table:
    """Return the result of `estimate` for the words of a corpus, as a table of words with `NULL` as the empty word."""
    source, target = [*pairs.source.words, NULL], pairs.target.words
    table: Table = collections.defaultdict(dict)
    found = estimate(pairs.source.numbers, pairs.target.numbers, source.index(NULL))
    for condition, word, value in zip(*(each.tolist() for each in found), strict=True):
        table[source[condition]][target[word]] = value
    return dict(table)


def estimate(source: Ragged, target: Ragged, null: int) -> Translations:
    """Estimate p(target word|source word) with IBM model 1 (Brown et al. 1993), starting from uniform probabilities.

    Runs `ITERATIONS` iterations of EM over all links of the corpus as one array.

    Args:
        source: word ids of each sentence.
        target: word ids of its translation.
        null: id of the empty word, which is added to each source sentence. It generates target words without a
            counterpart.
    """
    size = int(target.values.max(initial=0)) + 1
    blocks = [slice(start, start + ESTIMATED) for start in range(0, len(source), ESTIMATED)]
    # One integer key for each (source word, target word) of each pair, ordered by target position. All keys of a
    # target word are adjacent, so that `reduceat` can normalize them.
    keys = np.concatenate([_keys(source.part(block), target.part(block), null, size) for block in blocks])  # (keys,)
    entries, entry_of = np.unique(keys, return_inverse=True)  # (E,) distinct keys, (keys,) the index of each in them
    del keys  # as large as `entry_of`
    lengths = np.repeat(source.lengths + 1, target.lengths)  # (target words,)
    starts, probability = np.cumsum(lengths) - lengths, np.ones(len(entries))  # (target words,), (E,)
    with progress_bar("IBM model 1", ITERATIONS) as bar:
        for _ in range(ITERATIONS):
            posterior = probability[entry_of]  # (keys,)
            posterior /= np.repeat(np.add.reduceat(posterior, starts), lengths)  # (keys,)
            counts = np.bincount(entry_of, weights=posterior, minlength=len(entries))  # (E,)
            probability = counts / np.bincount(entries // size, weights=counts)[entries // size]  # (E,)
            bar.advance(1, "")
    return Translations(conditions=entries // size, words=entries % size, probabilities=probability)


def _keys(source: Ragged, target: Ragged, null: int, size: int) -> Integers:
    """Return source id · size + target id of all links of some pairs, ordered by target position."""
    with_null = Ragged(np.insert(source.values, source.ends[:-1], null), source.ends + np.arange(len(source.ends)))
    of_targets = with_null.take(np.repeat(np.arange(len(target)), target.lengths))  # source ids for each target word
    return of_targets.values.astype(np.int64) * size + np.repeat(target.values, of_targets.lengths)  # (keys,)


def relative(counts: csr_array) -> Translations:
    """Return p(word|condition) by relative frequency, for counts (conditions, words)."""
    entries = counts.sorted_indices().tocoo()
    totals = np.asarray(counts.sum(axis=1))  # (conditions,)
    return Translations(entries.row, entries.col, entries.data / totals[entries.row])


def count(source: Ragged, target: Ragged, links: Ragged, nulls: tuple[int, int]) -> csr_array:
    """Count the links of each source word with each target word, as Moses' `lex.f2e` does.

    A word without a link is linked to the empty word of the other side.

    Args:
        source: word ids of each sentence.
        target: word ids of its translation.
        links: encoded links of each pair.
        nulls: ids of the empty word in source and target, larger than other ids.

    Returns:
        (nulls[0] + 1, nulls[1] + 1) number of links.
    """
    shape = (nulls[0] + 1, nulls[1] + 1)
    counts = csr_array(shape, dtype=np.int64)
    for start in range(0, len(links), COUNTED):
        block = slice(start, start + COUNTED)
        entries = _linked_words(source.part(block), target.part(block), links.part(block), nulls)
        counts = counts + coo_array((np.ones(len(entries[0]), np.int64), entries), shape).tocsr()
    return counts


def _linked_words(source: Ragged, target: Ragged, links: Ragged, nulls: tuple[int, int]) -> tuple[Integers, Integers]:
    """Return the ids of both words (L,) of each link in some pairs, links to the empty words included."""
    left, right = word_indices(links, source.ends, target.ends)  # (links,) both
    unaligned_source = np.ones(len(source.values), np.bool_)
    unaligned_target = np.ones(len(target.values), np.bool_)
    unaligned_source[left] = unaligned_target[right] = False
    sources, targets = source.values[unaligned_source], target.values[unaligned_target]
    return (
        np.concatenate([source.values[left], sources, np.full(len(targets), nulls[0])]),  # (L,)
        np.concatenate([target.values[right], np.full(len(sources), nulls[1]), targets]),  # (L,)
    )
