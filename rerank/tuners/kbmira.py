"""Batch k-best MIRA (Cherry & Foster 2012), with the arithmetic of Moses' kbmira.

For each sentence in turn, with weights w, features f and B(c) = metric(stats(c) + b) · length(stats(c) + b), where b
are decayed statistics of the sentences before: hope = argmax(w·f + B), fear = argmax(w·f - B); where the margin of hope
over fear is smaller than its lead in B, w moves by min(C, loss / |f_hope - f_fear|²) along the difference, and with a
ridge back towards the start. After each epoch the average of all w so far is measured on the whole list, and the best
average is kept.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.compiled import compiled
from moses_io.files.errors import InputError, shown
from rerank.linear.candidates import Sparse
from rerank.metrics.formula import Parts, length, value
from rerank.tuners.problem import MOST_TIMES, Problem, Tuned, check_numbers


@dataclass(frozen=True)
class KbmiraSettings:
    """Settings; those without a word on it are Moses'.

    Attributes:
        iterations: epochs over the sentences.
        step: C, largest step; Moses has 0.01, for features in their own units and not divided by their spread.
        ridge: after each step w becomes (w + ridge · start) / (1 + ridge).
        decay: of the statistics of the sentences before, a sentence.
        seed: of the order of the sentences.

    Raises:
        InputError: a value is out of range.
    """

    iterations: int = 60
    step: float = 0.03
    ridge: float = 0.0
    decay: float = 0.999
    seed: int = 1

    def __post_init__(self) -> None:
        check_numbers(1, whole=True, most=MOST_TIMES, iterations=self.iterations)
        check_numbers(0, whole=True, seed=self.seed)
        check_numbers(0, above=True, step=self.step, decay=self.decay)
        check_numbers(0, ridge=self.ridge)
        if self.decay > 1:
            raise InputError(f"decay: expected a number above 0 and at most 1, found {shown(self.decay)}")

    @property
    def signature(self) -> str:
        """What made the weights."""
        ridge = f"|ridge:{self.ridge:g}" if self.ridge else ""
        return f"kbmira|iterations:{self.iterations}|C:{self.step:g}|decay:{self.decay:g}{ridge}|seed:{self.seed}"


class Arrays(NamedTuple):
    """What stays: a `Problem` in one precision, its arrays as there, and step, decay and ridge, (3,)."""

    offsets: Integers
    dense: Array
    sparse: Sparse
    statistics: Array
    parts: Parts
    start: Array
    lower: Array
    upper: Array
    rates: Array


class MiraState(NamedTuple):
    """What changes.

    Attributes:
        weights: (size,) w.
        totals: (size,) sum of w after each update, and of the start; of a sparse weight up to when it last changed.
        changed: (size,) number of the update in which a weight last changed.
        updates: (1,) how many there were.
        background: (formula.size,) b.
    """

    weights: Array
    totals: Array
    changed: Integers
    updates: Integers
    background: Array


class Mira:
    """Weights under way, in the precision `real`."""

    def __init__(self, problem: Problem, settings: KbmiraSettings, real: Any = np.float64) -> None:
        candidates, size = problem.candidates, len(problem.start)
        start, lower, upper = (each.astype(real) for each in (problem.start, *problem.bounds()))
        self._arrays = Arrays(
            offsets=candidates.offsets,
            dense=candidates.dense.astype(real),
            sparse=candidates.sparse._replace(values=candidates.sparse.values.astype(real)),
            statistics=problem.statistics.astype(real),
            parts=problem.formula.parts,
            start=start,
            lower=lower,
            upper=upper,
            rates=np.array([settings.step, settings.decay, settings.ridge], dtype=real),
        )
        self._state = MiraState(
            weights=start.copy(),
            totals=start.copy(),
            changed=np.zeros(size, dtype=np.int64),
            updates=np.zeros(1, dtype=np.int64),
            background=np.ones(problem.formula.size, dtype=real),
        )

    def epoch(self, order: Integers) -> Array:
        """Visit the sentences and return the average of all weights so far.

        The start counts in the sum and not in the number of updates, as in Moses.
        """
        state = self._state
        _epoch(self._arrays, order, state)
        real = state.totals.dtype.type
        state.totals[:] += (state.updates - state.changed).astype(real) * state.weights  # (size,)
        state.changed[:] = state.updates
        return state.totals / real(max(1, state.updates[0]))


def tune(problem: Problem, settings: KbmiraSettings) -> Tuned:
    """Tune weights.

    Returns:
        The average weights of the best epoch, or the start where no epoch was better.
    """
    rng = np.random.default_rng(settings.seed)
    mira = Mira(problem, settings)
    best, weights = problem.measure(problem.start), problem.start
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
    """Visit the sentences in this order; changes all of the state."""
    background, decay = state.background, arrays.rates[1]
    real = background.dtype.type
    difference = np.zeros_like(state.weights)
    for sentence in order:
        hope, fear, lead = _hope_and_fear(arrays, sentence, state)
        if hope == fear or lead <= 0:
            continue
        columns = _difference(arrays.dense, arrays.sparse, hope, fear, difference)
        _update(arrays, lead, columns, difference, state)
        for place in range(len(background)):
            background[place] = real(real(decay * background[place]) + arrays.statistics[hope, place])


@compiled()
def _hope_and_fear(arrays: Arrays, sentence: int, state: MiraState) -> tuple[int, int, float]:
    """Return hope, fear and how far B(hope) is above B(fear); of several candidates that are as good the first."""
    weights, background = state.weights, state.background
    dense, sparse, statistics, parts = arrays.dense, arrays.sparse, arrays.statistics, arrays.parts
    real = weights.dtype.type
    start, end = arrays.offsets[sentence], arrays.offsets[sentence + 1]
    hope = fear = start
    highest = lowest = hoped = feared = real(0)
    row = np.empty_like(background)  # (formula.size,)
    for candidate in range(start, end):
        score = _score(dense, sparse, candidate, weights)
        for place in range(len(row)):
            row[place] = statistics[candidate, place] + background[place]
        lead = real(value(row, parts, False) * length(row, parts))
        if candidate == start or real(score + lead) > highest:
            hope, highest, hoped = candidate, real(score + lead), lead
        if candidate == start or real(score - lead) > lowest:
            fear, lowest, feared = candidate, real(score - lead), lead
    return hope, fear, real(hoped - feared)


@compiled(inline="always")
def _score(dense: Array, sparse: Sparse, candidate: int, weights: Array) -> float:
    """Return w·f, summed from left to right."""
    real = weights.dtype.type
    score = real(0)
    size = dense.shape[1]
    for column in range(size):
        score = real(score + real(weights[column] * dense[candidate, column]))
    for place in range(sparse.offsets[candidate], sparse.offsets[candidate + 1]):
        score = real(score + real(weights[size + sparse.columns[place]] * sparse.values[place]))
    return score


@compiled()
def _difference(dense: Array, sparse: Sparse, hope: int, fear: int, difference: Array) -> Integers:
    """Put f_hope - f_fear into (size,) `difference`, in the columns that it returns; the others stay as they are."""
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
        for place in range(offsets[candidate], offsets[candidate + 1]):
            difference[size + sparse.columns[place]] += real(sign * sparse.values[place])
    return columns


@compiled()
def _update(arrays: Arrays, lead: float, columns: Integers, difference: Array, state: MiraState) -> None:
    """Move along the difference where its margin is below its lead; changes all of the state but the background."""
    weights, totals, changed, updates = state.weights, state.totals, state.changed, state.updates
    step, _, ridge = arrays.rates
    real = weights.dtype.type
    norm = margin = real(0)
    for column in columns:
        norm = real(norm + real(difference[column] * difference[column]))
        margin = real(margin + real(weights[column] * difference[column]))
    loss = real(lead - margin)
    if not (loss > 0 and norm > 0):
        return
    updates[0] += 1
    by = min(step, real(loss / norm))
    for column in columns:
        delta = real(difference[column] * by)
        if ridge > 0:
            delta = real((delta + ridge * (arrays.start[column] - weights[column])) / (1 + ridge))
        if weights[column] + delta < arrays.lower[column]:
            delta = real(arrays.lower[column] - weights[column])
        elif weights[column] + delta > arrays.upper[column]:
            delta = real(arrays.upper[column] - weights[column])
        missed = real(updates[0] - changed[column])
        totals[column] = real(totals[column] + real(real(missed * weights[column]) + delta))
        weights[column] = real(weights[column] + delta)
        changed[column] = updates[0]
