"""Exact reproduction of Moses' kbmira, to the last digit.

It computes in float32, keeps the order of the sentences, and uses only the candidates that kbmira uses. kbmira intends
to drop candidates with equal features, but its comparison (`item1.dense == item1.dense`, in FeatureDataIterator.cpp) is
always true. So it drops each candidate that falls into an occupied bucket of boost's hash set. There are 16 buckets, so
kbmira uses at most 16 candidates per sentence.

This rule is inferred: of all rules that we tried, only this one reproduces the weights of `kbmira --no-shuffle`. It
requires a version of boost whose sets do not compare hashes before keys. A kbmira built with another version uses other
candidates.
"""

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
"""Maximum step size of Moses' kbmira, for features that are not divided by their spread."""
_U = np.uint64


def tune(problem: Problem, settings: KbmiraSettings) -> Tuned:
    """Tune as `kbmira --no-shuffle` does.

    The best epoch is selected on the candidates that kbmira uses. It is returned even if the initial weights are
    better. The metric in the result is measured on all candidates.

    Raises:
        InputError: the list has sparse features, whose hashes depend on Moses' internal feature ids.
    """
    if problem.candidates.space.sparse:
        raise InputError("parity with Moses is for lists without sparse features")
    seen = problem.rows(seen_by_kbmira(problem.candidates))
    mira = Mira(seen, settings, np.float32)
    order: Integers = np.arange(len(seen.candidates.sentences))
    best, weights = 0.0, problem.initial
    for _ in range(settings.iterations):
        average = mira.epoch(order).astype(np.float64)
        metric = seen.measure(average)
        if metric > best:
            best, weights = metric, average
    return Tuned(weights, problem.measure(weights))


def seen_by_kbmira(candidates: Candidates) -> Integers:
    """Return the indices of the candidates that kbmira uses: the first in each bucket of each sentence's hash set."""
    buckets = _mixed(_hashes(candidates.dense)) & _U(BUCKETS - 1)
    owners = np.repeat(np.arange(len(candidates.sentences)), np.diff(candidates.offsets))  # (N,)
    _, first = np.unique(owners * BUCKETS + buckets.astype(np.int64), return_index=True)  # (seen,)
    return np.sort(first)


def _hashes(dense: Array) -> Hashes:
    """Return the (N,) boost hashes of each row combined with an empty sparse vector.

    A float hashes to its bits, 0.0 and -0.0 both to 0.
    """
    rows = dense.astype(np.float32)
    bits = np.where(rows == 0, 0, rows.view(np.uint32)).astype(_U)  # (N, dense)
    row = np.zeros(len(rows), dtype=_U)
    for column in bits.T:
        row = _combined(row, column)
    nothing = np.zeros_like(row)
    return _combined(_combined(nothing, row), nothing)


def _combined(seed: Hashes, added: Hashes) -> Hashes:
    """Combine hashes as boost::hash_combine does for 64 bits (MurmurHash)."""
    factor = _U(0xC6A4A7935BD1E995)
    added = added * factor
    added = (added ^ (added >> _U(47))) * factor
    return (seed ^ added) * factor + _U(0xE6546B64)


def _mixed(key: Hashes) -> Hashes:
    """Mix bits as boost's mix64_policy does, so that the low bits can select one of 2^k buckets."""
    key = ~key + (key << _U(21))
    key ^= key >> _U(24)
    key = key + (key << _U(3)) + (key << _U(8))
    key ^= key >> _U(14)
    key = key + (key << _U(2)) + (key << _U(4))
    key ^= key >> _U(28)
    return key + (key << _U(31))
