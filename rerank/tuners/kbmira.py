"""Batch k-best MIRA (Cherry & Foster 2012), with the arithmetic of Moses' kbmira.

For each sentence in turn, with weights w, features f and B(c) = metric(stats(c) + b) · length(stats(c) + b), where b
are decayed statistics of the sentences before: hope = argmax(w·f + B), fear = argmax(w·f - B); where the margin of hope
over fear is smaller than its lead in B, w moves by min(C, loss / |f_hope - f_fear|²) along the difference, and with a
ridge back towards the start. After each epoch the average of all w so far is measured on the whole list, and the best
average is kept.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from moses_io.errors import InputError
from rerank.candidates import Array, Integers
from rerank.metrics.kernels import length, value
from rerank.tuners.problem import Problem, Tuned, check_numbers


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
        check_numbers(self, {"iterations": 1, "seed": 0}, ["step"], ["ridge"])
        if not (isinstance(self.decay, (int, float)) and 0 < self.decay <= 1):
            raise InputError(f"decay: expected a number above 0 and at most 1, found {self.decay!r}")

    @property
    def signature(self) -> str:
        """What made the weights."""
        ridge = f"|ridge:{self.ridge:g}" if self.ridge else ""
        return f"kbmira|iterations:{self.iterations}|C:{self.step:g}|decay:{self.decay:g}{ridge}|seed:{self.seed}"


class Learner:
    """Weights under way, in the precision of the arrays.

    Attributes:
        weights: (size,) w.
        totals: (size,) sum of w after each update, and of the start; of a sparse weight up to when it last changed.
        changed: (size,) number of the update in which a weight last changed.
        background: (metric.size,) b.
        updates: how many there were.
    """

    def __init__(self, problem: Problem, settings: KbmiraSettings, real: Any = np.float64) -> None:
        candidates = problem.candidates
        sparse = candidates.sparse
        dense: Array = candidates.dense.astype(real)
        values: Array = sparse.values.astype(real)
        self._list = (candidates.offsets, dense, sparse.offsets, sparse.columns, values)
        self._statistics: Array = problem.statistics.astype(real)
        self._metric = problem.metric
        self._limits: Array = np.array([settings.step, settings.decay, settings.ridge], dtype=real)
        around = (problem.start, problem.lower, problem.upper)
        self._around = [np.broadcast_to(each, problem.start.shape).astype(real) for each in around]
        self.weights: Array = problem.start.astype(real)
        self.totals: Array = problem.start.astype(real)
        self.changed = np.zeros(len(self.weights), dtype=np.int64)
        self.background: Array = np.ones(self._statistics.shape[1], dtype=real)
        self.updates = 0

    def epoch(self, order: Integers) -> Array:
        """Visit the sentences and return the average of all weights so far.

        The start counts in the sum and not in the number of updates, as in Moses.
        """
        state = (self.weights, self.totals, self.changed, self.background)
        metric = (self._metric.parts, self._metric.weights)
        self.updates = _epoch(  # type: ignore[call-arg]
            order, *self._list, self._statistics, *metric, *self._limits, *self._around, *state, self.updates
        )
        behind = (self.updates - self.changed).astype(self.totals.dtype)
        self.totals += behind * self.weights
        self.changed[:] = self.updates
        average: Array = self.totals / self.totals.dtype.type(max(1, self.updates))
        return average


def tune(problem: Problem, settings: KbmiraSettings, shuffle: bool = True) -> Tuned:
    """Tune weights.

    Returns:
        The average weights of the best epoch, or the start where no epoch was better.
    """
    rng = np.random.default_rng(settings.seed)
    learner = Learner(problem, settings)
    before = best = problem.measure(problem.start)
    weights = problem.start
    order: Integers = np.arange(len(problem.candidates.sentences))
    for _ in range(settings.iterations):
        if shuffle:
            rng.shuffle(order)
        average = learner.epoch(order)
        metric = problem.measure(average)
        if metric > best:
            best, weights = metric, average
    return Tuned(weights, best, before)


@numba.njit(cache=True)
def _score(candidate: int, dense: Array, offsets: Integers, columns: Integers, values: Array, weights: Array) -> float:
    real = weights.dtype.type
    score = real(0)
    size = dense.shape[1]
    for column in range(size):
        score = real(score + real(weights[column] * dense[candidate, column]))
    for place in range(offsets[candidate], offsets[candidate + 1]):
        score = real(score + real(weights[size + columns[place]] * values[place]))
    return score


@numba.njit(cache=True)
def _add(
    candidate: int, by: float, dense: Array, offsets: Integers, columns: Integers, values: Array, into: Array
) -> None:
    real = into.dtype.type
    size = dense.shape[1]
    for column in range(size):
        into[column] = real(into[column] + real(by * dense[candidate, column]))
    for place in range(offsets[candidate], offsets[candidate + 1]):
        into[size + columns[place]] += real(by * values[place])


@numba.njit(cache=True)
def _hope_and_fear(
    start: int, end: int, dense: Array, offsets: Integers, columns: Integers, values: Array,
    statistics: Array, parts: Integers, metric_weights: Array, weights: Array, background: Array,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Return hope, fear and B of each; of several that are as good the first."""
    real = weights.dtype.type
    hope = fear = start
    highest = lowest = hoped = feared = real(0)
    for candidate in range(start, end):
        score = _score(candidate, dense, offsets, columns, values, weights)
        row = statistics[candidate] + background
        lead = real(value(row, parts, metric_weights, False) * length(row, parts))
        if candidate == start or real(score + lead) > highest:
            hope, highest, hoped = candidate, real(score + lead), lead
        if candidate == start or real(score - lead) > lowest:
            fear, lowest, feared = candidate, real(score - lead), lead
    return hope, fear, hoped, feared


@numba.njit(cache=True, nogil=True)
def _epoch(
    order: Integers, sentences: Integers, dense: Array, offsets: Integers, columns: Integers, values: Array,
    statistics: Array, parts: Integers, metric_weights: Array, step: float, decay: float, ridge: float,
    start: Array, lower: Array, upper: Array,
    weights: Array, totals: Array, changed: Integers, background: Array, updates: int,
) -> int:  # fmt: skip
    """Visit the sentences in this order; return the number of updates so far."""
    real = weights.dtype.type
    size = dense.shape[1]
    difference = np.zeros(len(weights), dtype=weights.dtype)
    for sentence in order:
        hope, fear, hoped, feared = _hope_and_fear(
            sentences[sentence], sentences[sentence + 1], dense, offsets, columns, values,
            statistics, parts, metric_weights, weights, background,
        )  # fmt: skip
        if hope == fear or hoped <= feared:
            continue
        sparse = np.concatenate(
            (columns[offsets[hope] : offsets[hope + 1]], columns[offsets[fear] : offsets[fear + 1]])
        )
        if len(sparse):
            sparse = np.unique(sparse)
        touched = np.concatenate((np.arange(size), size + sparse))
        difference[touched] = real(0)
        _add(hope, real(1), dense, offsets, columns, values, difference)
        _add(fear, real(-1), dense, offsets, columns, values, difference)
        norm = margin = real(0)
        for column in touched:
            norm = real(norm + real(difference[column] * difference[column]))
            margin = real(margin + real(weights[column] * difference[column]))
        loss = real(real(hoped - feared) - margin)
        if loss > 0 and norm > 0:
            updates += 1
            by = min(step, real(loss / norm))
            for column in touched:
                delta = real(difference[column] * by)
                if ridge > 0:
                    delta = real((delta + ridge * (start[column] - weights[column])) / (1 + ridge))
                if weights[column] + delta < lower[column]:
                    delta = real(lower[column] - weights[column])
                elif weights[column] + delta > upper[column]:
                    delta = real(upper[column] - weights[column])
                missed = real(updates - changed[column])
                totals[column] = real(totals[column] + real(real(missed * weights[column]) + delta))
                weights[column] = real(weights[column] + delta)
                changed[column] = updates
        for place in range(len(background)):
            background[place] = real(real(decay * background[place]) + statistics[hope, place])
    return updates
