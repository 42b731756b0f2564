"""Batch k-best MIRA (Cherry & Foster 2012), with the arithmetic of Moses' kbmira.

For each sentence in turn, with weights w, features f and B(c) = BLEU(stats(c) + b) · reflength(stats(c) + b), where b
are decayed statistics of the sentences before: hope = argmax(w·f + B), fear = argmax(w·f - B); where the margin of
hope over fear is smaller than its lead in B, w moves by min(C, loss / |f_hope - f_fear|²) along the difference. After
each epoch the average of all w so far is measured on the whole list, and the best average is kept.
"""

from dataclasses import dataclass

import numpy as np

from moses_io.errors import InputError
from rerank.bleu import STATISTICS, corpus_bleu
from rerank.candidates import Array, Candidates, Integers


@dataclass(frozen=True)
class KbmiraSettings:
    """Settings with Moses' defaults.

    Attributes:
        iterations: epochs over the sentences.
        step: C, largest step.
        decay: of the statistics of the sentences before, a sentence.
        seed: of the order of the sentences.

    Raises:
        InputError: a value is out of range.
    """

    iterations: int = 60
    step: float = 0.01
    decay: float = 0.999
    seed: int = 1

    def __post_init__(self) -> None:
        whole = {"iterations": (self.iterations, 1), "seed": (self.seed, 0)}
        for name, (value, smallest) in whole.items():
            if not isinstance(value, int) or value < smallest:
                raise InputError(f"{name}: expected a whole number from {smallest}, found {value!r}")
        if not (isinstance(self.step, (int, float)) and self.step > 0):
            raise InputError(f"step: expected a number above 0, found {self.step!r}")
        if not (isinstance(self.decay, (int, float)) and 0 < self.decay <= 1):
            raise InputError(f"decay: expected a number above 0 and at most 1, found {self.decay!r}")

    @property
    def signature(self) -> str:
        """What made the weights."""
        return f"kbmira|iterations:{self.iterations}|C:{self.step:g}|decay:{self.decay:g}|seed:{self.seed}"


@dataclass(frozen=True)
class Tuned:
    """What a tuner found.

    Attributes:
        weights: (size,) in the order of the feature space.
        metric: corpus BLEU, 0 … 1, of the best candidates under these weights.
        start: the same under the start weights.
    """

    weights: Array
    metric: float
    start: float


class _Learner:
    """Weights under way: w, the sum of all w after each update, and the statistics of the sentences before."""

    def __init__(self, candidates: Candidates, statistics: Array, start: Array, settings: KbmiraSettings) -> None:
        self._candidates, self._statistics, self._settings = candidates, statistics, settings
        self.weights, self._total = start.copy(), start.copy()
        self._updates = 0
        self._background = np.ones(STATISTICS)

    @property
    def average(self) -> Array:
        """The start counts in the sum and not in the number of updates, as in Moses."""
        return self._total / max(1, self._updates)

    def visit(self, start: int, end: int) -> None:
        """Learn from the sentence with these candidates."""
        candidates = self._candidates
        with_background = self._statistics[start:end] + self._background
        value = corpus_bleu(with_background) * with_background[:, -1]
        score = self._scores(start, end)
        hope, fear = int(np.argmax(score + value)), int(np.argmax(score - value))
        if value[hope] <= value[fear]:
            return
        difference = candidates.row(start + hope) - candidates.row(start + fear)
        loss = value[hope] - value[fear] - (score[hope] - score[fear])
        norm = float(difference @ difference)
        if loss > 0 and norm > 0:
            self.weights += min(self._settings.step, loss / norm) * difference
            self._total += self.weights
            self._updates += 1
        self._background = self._settings.decay * self._background + self._statistics[start + hope]

    def _scores(self, start: int, end: int) -> Array:
        split = self._candidates.space.dense_size
        scores: Array = self._candidates.dense[start:end] @ self.weights[:split]
        sparse = self._candidates.sparse
        if sparse is not None:
            own = slice(sparse.offsets[start], sparse.offsets[end])
            rows = np.repeat(np.arange(end - start), np.diff(sparse.offsets[start : end + 1]))
            products = sparse.values[own] * self.weights[split:][sparse.columns[own]]
            scores = scores + np.bincount(rows, weights=products, minlength=end - start)
        return scores


def tune(
    candidates: Candidates, statistics: Array, start: Array, settings: KbmiraSettings, shuffle: bool = True
) -> Tuned:
    """Tune weights.

    Args:
        candidates: of the tuning set.
        statistics: (N, 9) BLEU statistics of every candidate.
        start: (size,) start weights.
        settings: of the algorithm.
        shuffle: visit the sentences in random order.

    Returns:
        The average weights of the best epoch, or the start where no epoch was better.

    Raises:
        InputError: BLEU is 0 whatever the weights were.
    """
    rng = np.random.default_rng(settings.seed)
    learner = _Learner(candidates, statistics, start, settings)
    before = best = measure(candidates, statistics, start)
    weights = start
    order: Integers = np.arange(len(candidates.sentences))
    for _ in range(settings.iterations):
        if shuffle:
            rng.shuffle(order)
        for number in order:
            learner.visit(int(candidates.offsets[number]), int(candidates.offsets[number + 1]))
        metric = measure(candidates, statistics, learner.average)
        if metric > best:
            best, weights = metric, learner.average
    if best == 0:
        raise InputError("BLEU on the tuning set is 0 whatever the weights; do list and references fit (tokens, case)?")
    return Tuned(weights, best, before)


def measure(candidates: Candidates, statistics: Array, weights: Array) -> float:
    """Return corpus BLEU, 0 … 1, of the candidates that the weights choose."""
    chosen = candidates.best(candidates.scores(weights))
    return float(corpus_bleu(statistics[chosen].sum(axis=0)))
