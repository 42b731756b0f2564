"""Significance of the difference between two systems: paired randomization tests on sentence statistics."""

from collections.abc import Callable

import numpy as np

from features.arrays import Array

TRIALS = 10_000
SEED = 12345

_TOLERANCE = 1e-9
"""Tolerance for rounding when differences of scores, 0 … 1 or 0 … 100, are compared."""

_BLOCK = 256
"""Number of sentences swapped at a time, which limits the memory for the coin tosses."""


def p_value(score: Callable[[Array], Array], one: Array, other: Array) -> float:
    """Return the two-sided p-value of the score difference between two systems.

    Approximate randomization (Riezler & Maxwell 2005): if the systems do not differ, each sentence could equally have
    come from the other system. Each trial swaps the statistics of random sentences between the systems. p is the
    fraction of trials with an absolute score difference at least as large as the observed one. The observed difference
    is itself one of the trials. If there are at most `TRIALS` ways to swap, each way is one trial and p is exact.

    Args:
        score: maps (trials, size) summed statistics to (trials,) scores.
        one: (n, size) sentence statistics of the first system.
        other: (n, size) sentence statistics of the second system, for the same sentences.
    """
    differs = (one != other).any(axis=1)  # (n,): swapping equal statistics changes nothing
    swapped = _swapped((other - one)[differs])  # (trials, size)
    differences = np.abs(score(one.sum(axis=0) + swapped) - score(other.sum(axis=0) - swapped))  # (trials,)
    return float(np.mean(differences >= differences[0] - _TOLERANCE))


def _swapped(changes: Array) -> Array:
    """Return the (trials, size) changes of the first system's summed statistics by random swaps.

    The first trial swaps no sentence.

    Args:
        changes: (differing, size) change of the sum by a swap of each sentence.
    """
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
    """Return the two-sided p-value of the score difference between two systems, each trained and tuned several times.

    Stratified approximate randomization with optimizer samples (Clark et al. 2011): if the systems do not differ, the
    outputs of all replicates of both systems for a sentence are exchangeable. Each trial shuffles these outputs among
    the replicates, independently for each sentence. p is the fraction of trials in which the mean scores of the two
    groups of replicates differ at least as much as observed. The observed difference is itself one of the trials.

    Args:
        score: maps (…, size) summed statistics to (…) scores.
        one: (replicates, n, size) sentence statistics of the first system's replicates.
        other: (replicates, n, size) sentence statistics of the second system's replicates, for the same sentences.
            The number of replicates may differ.
    """
    outputs = np.concatenate([one, other]).swapaxes(0, 1)  # (n, R, size)
    differs = (outputs != outputs[:, :1]).any(axis=(1, 2))  # (n,)
    scores = score(_shuffled_sums(outputs[differs]) + outputs[~differs].sum(axis=0))  # (trials, R)
    differences = np.abs(scores[:, : len(one)].mean(axis=1) - scores[:, len(one) :].mean(axis=1))  # (trials,)
    return float(np.mean(differences >= differences[0] - _TOLERANCE))


def _shuffled_sums(outputs: Array) -> Array:
    """Return (trials, R, size) sums of (n, R, size) statistics that are shuffled over R in each sentence.

    The first trial does not shuffle.
    """
    _, count, size = outputs.shape
    rng = np.random.default_rng(SEED)
    sums = np.zeros((1 + TRIALS, count, size))
    sums[0] = outputs.sum(axis=0)
    order = np.tile(np.arange(count), (TRIALS, 1))  # (TRIALS, R)
    for sentence in outputs:  # (R, size)
        sums[1:] += sentence[rng.permuted(order, axis=1)]  # (TRIALS, R, size)
    return sums
