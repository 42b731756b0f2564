"""Batch k-best MIRA (Cherry & Foster 2012), with the arithmetic of Moses' kbmira.

Let w be the weights, f the features of a candidate, b the background (decayed sum of the statistics of previous hopes),
and B(c) = metric(stats(c) + b) · length(stats(c) + b). For each sentence in turn:

* hope = argmax(w·f + B), fear = argmax(w·f - B), lead = B(hope) - B(fear).
* loss = lead - margin, where margin = w · (f_hope - f_fear).
* If the loss is positive, w moves by min(C, loss / |f_hope - f_fear|²) along f_hope - f_fear. With a ridge, w also
  moves back towards the initial weights.
* b becomes decay · b + stats(hope).

A sentence is skipped if hope and fear are equal or the lead is not positive.

After each epoch the average of all w so far is measured on the whole list. The best average is returned.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from moses_io.files.errors import InputError, shown
from rerank.linear.candidates import Sparse
from rerank.metrics.formula import Parts, length, value
from rerank.tuners.problem import MAX_COUNT, Problem, Tuned, check_numbers


@dataclass(frozen=True)
class KbmiraSettings:
    """Settings of the tuner `kbmira`. The defaults are the ones of Moses, except for `C`.

    Attributes:
        iterations: number of epochs over the sentences.
        C: maximum step size. Moses has 0.01, for features that are not divided by their spread.
        ridge: after each step the dense weights, and those of the sparse features that hope or fear has, become
            (w + ridge · initial weights) / (1 + ridge).
        decay: factor by which the background is multiplied at each sentence that is not skipped, above 0 and at most 1.
        seed: random seed for the order of the sentences.

    Raises:
        InputError: a value is out of range.
    """

    iterations: int = 60
    C: float = 0.03
    ridge: float = 0.0
    decay: float = 0.999
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, integer=True, maximum=MAX_COUNT, iterations=self.iterations)
        check_numbers(0, integer=True, seed=self.seed)
        check_numbers(0, exclusive=True, C=self.C, decay=self.decay)
        check_numbers(0, ridge=self.ridge)
        if self.decay > 1:
            raise InputError(f"decay: expected a number above 0 and at most 1, found {shown(self.decay)}")

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        ridge = f"|ridge:{self.ridge:g}" if self.ridge else ""
        return f"kbmira|iterations:{self.iterations}|C:{self.C:g}|decay:{self.decay:g}{ridge}|seed:{self.seed}"


class Arrays(NamedTuple):
    """Constant inputs: the arrays of a `Problem` in one precision, and (3,) `rates`: C, decay and ridge."""

    offsets: Integers
    dense: Array
    sparse: Sparse
    statistics: Array
    parts: Parts
    initial: Array
    lower: Array
    upper: Array
    rates: Array


class MiraState(NamedTuple):
    """State of the optimization, changed in place.

    The sum of the weights is updated lazily: an update touches only the sparse weights that change.

    Attributes:
        weights: (size,) w.
        totals: (size,) sum of the initial weights and of w after each update, up to update `changed` of each weight.
        changed: (size,) number of the update in which each weight was last touched.
        updates: (1,) number of updates so far.
        background: (formula.size,) b.
    """

    weights: Array
    totals: Array
    changed: Integers
    updates: Integers
    background: Array


class Mira:
    """Optimizer that runs one epoch at a time, in the precision `real`."""

    def __init__(self, problem: Problem, settings: KbmiraSettings, real: Any = np.float64) -> None:
        candidates, size = problem.candidates, len(problem.initial)
        initial, lower, upper = (each.astype(real) for each in (problem.initial, *problem.bounds()))
        self._arrays = Arrays(
            offsets=candidates.offsets,
            dense=candidates.dense.astype(real),
            sparse=candidates.sparse._replace(values=candidates.sparse.values.astype(real)),
            statistics=problem.statistics.astype(real),
            parts=problem.formula.parts,
            initial=initial,
            lower=lower,
            upper=upper,
            rates=np.array([settings.C, settings.decay, settings.ridge], dtype=real),
        )
        self._state = MiraState(
            weights=initial.copy(),
            totals=initial.copy(),
            changed=np.zeros(size, dtype=np.int64),
            updates=np.zeros(1, dtype=np.int64),
            background=np.ones(problem.formula.size, dtype=real),
        )

    def epoch(self, order: Integers) -> Array:
        """Run an epoch over the sentences in this order and return the (size,) average of all weights so far.

        As in Moses, the initial weights are in the sum but do not count as an update in the divisor.
        """
        state = self._state
        _epoch(self._arrays, order, state)
        real = state.totals.dtype.type
        # Bring the lazy sums up to date.
        state.totals[:] += (state.updates - state.changed).astype(real) * state.weights  # (size,)
        state.changed[:] = state.updates
        return state.totals / real(max(1, state.updates[0]))


def tune(problem: Problem, settings: KbmiraSettings) -> Tuned:
    """Tune weights. Returns the average weights of the best epoch, or the initial weights if no epoch is better."""
    rng = np.random.default_rng(settings.seed)
    mira = Mira(problem, settings)
    best, weights = problem.measure(problem.initial), problem.initial
    order: Integers = np.arange(len(problem.candidates.sentences))
    for _ in range(settings.iterations):
        rng.shuffle(order)
        average = mira.epoch(order)
        metric = problem.measure(average)
        if metric > best:
            best, weights = metric, average
    return Tuned(weights, best)


@compiled(nogil=True)
def _epoch(arrays: Arrays, order: Integers, state: MiraState) -> None:
    """Run an epoch over the sentences in this order. Changes `state`."""
    background, decay = state.background, arrays.rates[1]
    real = background.dtype.type
    difference = np.zeros_like(state.weights)
    for sentence in order:
        hope, fear, lead = _hope_and_fear(arrays, sentence, state)
        if hope == fear or lead <= 0:
            continue
        columns = _difference(arrays.dense, arrays.sparse, hope, fear, difference)
        _update(arrays, lead, columns, difference, state)
        for column in range(len(background)):
            background[column] = real(real(decay * background[column]) + arrays.statistics[hope, column])


@compiled()
def _hope_and_fear(arrays: Arrays, sentence: int, state: MiraState) -> tuple[int, int, float]:
    """Return hope, fear, and the lead B(hope) - B(fear). Ties go to the first candidate."""
    weights, background = state.weights, state.background
    dense, sparse, statistics, parts = arrays.dense, arrays.sparse, arrays.statistics, arrays.parts
    real = weights.dtype.type  # each operation is rounded to it, so that float32 gives the digits of Moses' kbmira
    start, end = arrays.offsets[sentence], arrays.offsets[sentence + 1]
    hope = fear = start
    highest = lowest = hoped = feared = real(0)
    row = np.empty_like(background)  # (formula.size,)
    for candidate in range(start, end):
        score = _score(dense, sparse, candidate, weights)
        for column in range(len(row)):
            row[column] = statistics[candidate, column] + background[column]
        lead = real(value(row, parts, False) * length(row, parts))
        if candidate == start or real(score + lead) > highest:
            hope, highest, hoped = candidate, real(score + lead), lead
        if candidate == start or real(score - lead) > lowest:
            fear, lowest, feared = candidate, real(score - lead), lead
    return hope, fear, real(hoped - feared)


@compiled(inline="always")
def _score(dense: Array, sparse: Sparse, candidate: int, weights: Array) -> float:
    """Return w·f, summed from left to right, so that rounding is as in Moses."""
    real = weights.dtype.type
    score = real(0)
    size = dense.shape[1]
    for column in range(size):
        score = real(score + real(weights[column] * dense[candidate, column]))
    for index in range(sparse.offsets[candidate], sparse.offsets[candidate + 1]):
        score = real(score + real(weights[size + sparse.columns[index]] * sparse.values[index]))
    return score


@compiled()
def _difference(dense: Array, sparse: Sparse, hope: int, fear: int, difference: Array) -> Integers:
    """Write f_hope - f_fear into (size,) `difference` and return the columns that are written.

    These are all dense columns and the sparse columns of either candidate. Other columns keep old values.
    """
    offsets, size, real = sparse.offsets, dense.shape[1], difference.dtype.type
    both = (sparse.columns[offsets[hope] : offsets[hope + 1]], sparse.columns[offsets[fear] : offsets[fear + 1]])
    columns = np.concatenate(both)  # (sparse values of both,)
    if len(columns):
        columns = np.unique(columns)  # (sparse columns of either,)
    columns = np.concatenate((np.arange(size), size + columns))  # (touched,)
    difference[columns] = 0
    for candidate, sign in ((hope, real(1)), (fear, real(-1))):
        for column in range(size):
            difference[column] = real(difference[column] + real(sign * dense[candidate, column]))
        for index in range(offsets[candidate], offsets[candidate + 1]):
            difference[size + sparse.columns[index]] += real(sign * sparse.values[index])
    return columns


@compiled()
def _update(arrays: Arrays, lead: float, columns: Integers, difference: Array, state: MiraState) -> None:
    """Update the weights if the margin is below the lead. Changes `state` except the background."""
    weights, totals, changed, updates = state.weights, state.totals, state.changed, state.updates
    max_step, _, ridge = arrays.rates
    real = weights.dtype.type
    norm = margin = real(0)
    for column in columns:
        norm = real(norm + real(difference[column] * difference[column]))
        margin = real(margin + real(weights[column] * difference[column]))
    loss = real(lead - margin)
    if not (loss > 0 and norm > 0):
        return
    updates[0] += 1
    step_size = min(max_step, real(loss / norm))
    for column in columns:
        delta = real(difference[column] * step_size)
        if ridge > 0:
            delta = real((delta + ridge * (arrays.initial[column] - weights[column])) / (1 + ridge))
        if weights[column] + delta < arrays.lower[column]:
            delta = real(arrays.lower[column] - weights[column])
        elif weights[column] + delta > arrays.upper[column]:
            delta = real(arrays.upper[column] - weights[column])
        # The updates since the last touch, this one included, each add the old weight. This one also adds delta.
        pending = real(updates[0] - changed[column])
        totals[column] = real(totals[column] + real(real(pending * weights[column]) + delta))
        weights[column] = real(weights[column] + delta)
        changed[column] = updates[0]
