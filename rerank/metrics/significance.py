"""Whether two systems differ by more than chance: a paired randomization test on the statistics of sentences."""

from collections.abc import Callable

import numpy as np

from features.arrays import Array

TRIALS = 10_000
SEED = 12345

_NOISE = 1e-9
"""Differences of scores, 0 … 1 or 0 … 100, that are nearer to each other than this are equal but for rounding."""

_BLOCK = 256


def p_value(score: Callable[[Array], Array], one: Array, other: Array) -> float:
    """Return how often systems that are no different differ as much as these two, in either direction.

    Were there no difference, each sentence could as well have come from the other system (approximate randomization:
    Riezler & Maxwell 2005). So the statistics of sentences are swapped between the systems by tosses of a coin, and p
    is the share of trials whose absolute difference of scores is as large as that observed, or larger. What was
    observed is one of the trials. Where there are at most `TRIALS` ways to swap, each is a trial, and p is exact.

    Args:
        score: from sums of statistics, (trials, size), to scores, (trials,).
        one: (n, size) statistics of each sentence.
        other: (n, size) those of the other system, of the same sentences.
    """
    differs = (one != other).any(axis=1)  # (n,)
    swapped = _swapped((other - one)[differs])  # (trials, size)
    differences = np.abs(score(one.sum(axis=0) + swapped) - score(other.sum(axis=0) - swapped))  # (trials,)
    return float(np.mean(differences >= differences[0] - _NOISE))


def _swapped(changes: Array) -> Array:
    """(trials, size) what one system gets from the other by swaps of sentences, (differing, size); first by none."""
    sentences, size = changes.shape
    if 2**sentences <= TRIALS:
        numbers = np.arange(2**sentences)[:, None]  # (trials, 1)
        coins = numbers >> np.arange(sentences) & 1  # (trials, differing): the binary digits of each number
        return coins @ changes  # (trials, size)
    rng = np.random.default_rng(SEED)
    gained = np.zeros((1 + TRIALS, size))
    for start in range(0, sentences, _BLOCK):
        block = changes[start : start + _BLOCK]  # (block, size)
        gained[1:] += rng.integers(0, 2, size=(TRIALS, len(block)), dtype=np.int8) @ block  # (TRIALS, size)
    return gained


def replicates_p_value(score: Callable[[Array], Array], one: Array, other: Array) -> float:
    """Return how often systems that are no different differ as much as these, each trained and tuned several times.

    Were there no difference, the outputs that a sentence has of all replicates of both systems could as well be dealt
    anew (stratified approximate randomization with optimizer samples: Clark et al. 2011). So in each trial they are
    dealt anew, sentence by sentence, and p is the share of trials in which the mean scores of the replicates differ, in
    either direction, as much as those observed, or more. What was observed is one of the trials.

    Args:
        score: from sums of statistics, (…, size), to scores, (…).
        one: (replicates, n, size) statistics of each sentence.
        other: (its replicates, n, size) those of the other system, of the same sentences.
    """
    outputs = np.concatenate([one, other]).swapaxes(0, 1)  # (n, R, size)
    differs = (outputs != outputs[:, :1]).any(axis=(1, 2))  # (n,)
    scores = score(_dealt(outputs[differs]) + outputs[~differs].sum(axis=0))  # (trials, R)
    differences = np.abs(scores[:, : len(one)].mean(axis=1) - scores[:, len(one) :].mean(axis=1))  # (trials,)
    return float(np.mean(differences >= differences[0] - _NOISE))


def _dealt(outputs: Array) -> Array:
    """(trials, R, size) sums of statistics (n, R, size), the outputs of each sentence dealt anew; first as they are."""
    _, count, size = outputs.shape
    rng = np.random.default_rng(SEED)
    sums = np.zeros((1 + TRIALS, count, size))
    sums[0] = outputs.sum(axis=0)
    deck = np.tile(np.arange(count), (TRIALS, 1))  # (TRIALS, R)
    for sentence in outputs:  # (R, size)
        sums[1:] += sentence[rng.permuted(deck, axis=1)]  # (TRIALS, R, size)
    return sums
