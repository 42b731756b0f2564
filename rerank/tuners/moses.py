"""Moses' kbmira to the last digit: float32, the sentences in their order, and the candidates that it really looks at.

kbmira means to drop candidates with equal features, but its comparison (`item1.dense == item1.dense`, in
FeatureDataIterator.cpp) holds for any two. What is then dropped is whatever falls into a bucket of boost's hash set
that is taken already. There are 16 buckets, so that it sees at most 16 candidates of a sentence. This is inferred: with
it the weights of `kbmira --no-shuffle` come out, and with no other rule that we tried. It needs a boost whose sets do
not compare hashes before keys; a kbmira built with another one sees other candidates.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from features.arrays import Array, Integers
from moses_io.files.errors import InputError
from rerank.linear.candidates import Candidates
from rerank.tuners.kbmira import KbmiraSettings, Mira
from rerank.tuners.problem import Problem, Tuned

Hashes = NDArray[np.uint64]

BUCKETS = 16
STEP = 0.01
"""Largest step of Moses' kbmira, for features in their own units."""
_U = np.uint64


def tune(problem: Problem, settings: KbmiraSettings) -> Tuned:
    """Tune as `kbmira --no-shuffle` does; the best epoch is that of the candidates it sees, whatever the start was.

    Raises:
        InputError: the list has sparse features, whose hashes depend on Moses' numbering.
    """
    if problem.candidates.space.sparse:
        raise InputError("parity with Moses is for lists without sparse features")
    candidates, rows = problem.candidates, seen_by_kbmira(problem.candidates)
    part = candidates.rows(rows, candidates.sentences, np.searchsorted(rows, candidates.offsets))  # N = seen
    seen = replace(problem, candidates=part, statistics=problem.statistics[rows])  # (seen, formula.size)
    mira = Mira(seen, settings, np.float32)
    order: Integers = np.arange(len(seen.candidates.sentences))
    best, weights = 0.0, problem.start
    for _ in range(settings.iterations):
        average = mira.epoch(order).astype(np.float64)
        metric = seen.measure(average)
        if metric > best:
            best, weights = metric, average
    return Tuned(weights, problem.measure(weights))


def seen_by_kbmira(candidates: Candidates) -> Integers:
    """Return the candidates that kbmira looks at: of each bucket of a sentence's hash set the first."""
    buckets = _mixed(_hashes(candidates.dense)) & _U(BUCKETS - 1)
    owners = np.repeat(np.arange(len(candidates.sentences)), np.diff(candidates.offsets))  # (N,)
    _, first = np.unique(owners * BUCKETS + buckets.astype(np.int64), return_index=True)  # (seen,)
    return np.sort(first)


def _hashes(dense: Array) -> Hashes:
    """(N,) boost's hash of a row and of an empty sparse vector; a number hashes to its bits, both zeros to 0."""
    rows = dense.astype(np.float32)
    bits = np.where(rows == 0, 0, rows.view(np.uint32)).astype(_U)  # (N, dense)
    row = np.zeros(len(rows), dtype=_U)
    for column in bits.T:
        row = _combined(row, column)
    nothing = np.zeros_like(row)
    return _combined(_combined(nothing, row), nothing)


def _combined(seed: Hashes, added: Hashes) -> Hashes:
    """boost::hash_combine for 64 bits, after MurmurHash."""
    factor = _U(0xC6A4A7935BD1E995)
    added = added * factor
    added = (added ^ (added >> _U(47))) * factor
    return (seed ^ added) * factor + _U(0xE6546B64)


def _mixed(key: Hashes) -> Hashes:
    """Mix as boost's mix64_policy does, to spread hashes over buckets that are a power of two."""
    key = ~key + (key << _U(21))
    key ^= key >> _U(24)
    key = key + (key << _U(3)) + (key << _U(8))
    key ^= key >> _U(14)
    key = key + (key << _U(2)) + (key << _U(4))
    key ^= key >> _U(28)
    return key + (key << _U(31))
