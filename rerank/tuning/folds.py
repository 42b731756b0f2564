"""Cross-validation: the gain of new features on sentences that the weights were not tuned on.

The baseline is not Moses' own weights but the old features, tuned again on the same folds. Moses' weights were tuned on
all of dev, so a comparison with them would be biased: in cross-validation in favour of the old features, on all of dev
in favour of the new features. The initial weights are only compared to decide whether to keep them (`LIKELY`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from features.arrays import Array, Integers
from features.progress import Bar, log, progress_bar
from moses_io.files.errors import InputError
from rerank.metrics.formula import Formula
from rerank.metrics.significance import p_value
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run

FOLDS = 5
"""Default number of folds."""

LIKELY = 0.3
"""Maximum two-sided p-value of a loss for which the initial weights are kept.

Keeping them with less evidence loses more on other sentences than it saves (`docs/lab/tuning-figures.md`).
"""


def usable_folds(folds: int, sentences: int) -> int:
    """Return the number of folds (0: `FOLDS`), at most one per sentence."""
    return min(folds or FOLDS, sentences)


@dataclass(frozen=True)
class CrossValidation:
    """Metrics with and without some features, on sentences that the weights were not tuned on.

    Attributes:
        measured: how the metrics were measured, such as `in 5-fold cross-validation`.
        folds: number of folds.
        old: metric without the features in question, at most 1.
        new: metric with all features, at most 1.
        p: two-sided p-value of the difference. `helps` does not use it.
        weights: (size,) weights of all features, tuned without each fold.
        initial: metric with the initial weights, at most 1, or None if not measured.
        p_initial: two-sided p-value of its difference from `new`, or None if not measured.
    """

    measured: str
    folds: int
    old: float
    new: float
    p: float
    weights: tuple[Array, ...] = ()
    initial: float | None = None
    p_initial: float | None = None

    @property
    def helps(self) -> bool:
        """Whether the metric is higher with the features in question."""
        return self.new > self.old

    @property
    def keeps_initial(self) -> bool:
        """Whether to keep the initial weights.

        This is the case if they, or weights tuned without the features in question, score higher than weights tuned
        with all features, with a p-value below `LIKELY`.
        """
        old_is_better = self.old > self.new and self.p < LIKELY
        if self.initial is None or self.p_initial is None:
            return old_is_better
        return old_is_better or (self.initial > self.new and self.p_initial < LIKELY)

    def report(self, new: Sequence[str], metric: str, others: str) -> None:
        """Log the metric without and with the `new` features, and warn if they do not help.

        Args:
            new: names of the new features.
            metric: name of the metric and how it was measured, which starts the message.
            others: how the weights of the other features were obtained without the new ones.
        """
        without = f"without new features ({others})" if new else "with the initial weights"
        old, names = f"{100 * self.old:.2f} {without}", ", ".join(new)
        chosen = f"with {names}" if new else "with the chosen tuner"
        log.info(f"{metric}: {old}, {100 * self.new:.2f} {chosen} (p {self.p:.4f})")
        if new and not self.helps:
            log.warning(f"the new features ({names}) do not improve the score on sentences not used for tuning")


def cross_validate(problem: Problem, tuning: Tuning, columns: Integers, folds: int) -> CrossValidation:
    """Compare all features with all features except the ones in some columns, in cross-validation.

    Raises:
        InputError: `folds` is less than 2 or more than the number of sentences.
    """
    check_folds(folds, len(problem.candidates.sentences))
    with progress_bar("folds", 2 * folds, whole=True) as bar:
        new, weights = cross_validated(problem, tuning, folds, bar)
        old, _ = cross_validated(without(problem, columns), tuning, folds, bar)
    score, initial = problem.formula.score, problem.chosen(problem.initial)  # (n, formula.size)
    validated = compare(problem.formula, f"in {folds}-fold cross-validation", folds, old=old, new=new, weights=weights)
    return replace(validated, initial=float(score(initial.sum(axis=0))), p_initial=p_value(score, initial, new))


def compare(
    formula: Formula, measured: str, folds: int, *, old: Array, new: Array, weights: tuple[Array, ...]
) -> CrossValidation:
    """Return the metrics of candidates chosen without and with the features in question, and their p-value.

    Args:
        formula: formula of the metric.
        measured: how the metric was measured.
        folds: number of folds.
        old: (n, formula.size) statistics of the candidates chosen without the features.
        new: (n, formula.size) statistics of the candidates chosen with them.
        weights: (size,) weights of all features, tuned without each fold.
    """
    old_metric, new_metric = (float(formula.score(each.sum(axis=0))) for each in (old, new))  # ()
    p = p_value(formula.score, old, new)
    return CrossValidation(measured, folds, old=old_metric, new=new_metric, p=p, weights=weights)


def cross_validated(problem: Problem, tuning: Tuning, folds: int, bar: Bar) -> tuple[Array, tuple[Array, ...]]:
    """Choose the best candidate of each sentence with weights that were tuned on the other folds.

    Returns:
        The (n, formula.size) statistics of the chosen candidates, and the (size,) weights tuned without each fold.
    """
    statistics = np.zeros((len(problem.candidates.sentences), problem.formula.size))
    tuned = []
    for held_out, weights in fold_weights(problem, tuning, folds):
        statistics[held_out] = problem.subset(held_out).chosen(weights)  # (held_out, formula.size)
        tuned.append(weights)
        bar.advance(1, "")
    return statistics, tuple(tuned)


def fold_weights(problem: Problem, tuning: Tuning, folds: int) -> Iterator[tuple[Integers, Array]]:
    """Yield the sentence indices of each fold and the (size,) weights tuned on the other folds."""
    sentences = len(problem.candidates.sentences)
    for held_out in partition(sentences, folds):
        yield held_out, run(problem.subset(np.setdiff1d(np.arange(sentences), held_out)), tuning).weights


def check_folds(folds: int, sentences: int) -> None:
    """Raise `InputError` unless there are 2 folds or more and at most one fold per sentence."""
    if sentences < 2:
        raise InputError(f"folds: expected a list of 2 sentences or more, found {sentences}")
    if not 2 <= folds <= sentences:
        raise InputError(f"folds: expected a whole number from 2 to the {sentences} sentences, found {folds}")


def partition(sentences: int, folds: int) -> list[Integers]:
    """Return the sentence indices of each fold of a random partition. The seed is fixed, so that folds never change.

    Raises:
        InputError: `folds` is less than 2 or more than the number of sentences.
    """
    check_folds(folds, sentences)
    order = np.random.default_rng(0).permutation(sentences)  # (sentences,)
    return np.array_split(order, folds)


def without(problem: Problem, columns: Integers) -> Problem:
    """Return the problem with some columns removed: their values and initial weights are 0, dense weights are frozen.

    The columns stay in the arrays, so that indices do not change.
    """
    candidates, initial = problem.candidates, problem.initial.copy()
    dense, size = candidates.dense.copy(), candidates.space.dense_size
    initial[columns], dense[:, columns[columns < size]] = 0, 0
    lower, upper = (bound.copy() for bound in problem.bounds())
    lower[columns[columns < size]] = upper[columns[columns < size]] = 0
    kept = ~np.isin(candidates.sparse.columns + size, columns)
    sparse = candidates.sparse._replace(values=candidates.sparse.values * kept)
    remaining = replace(candidates, dense=dense, sparse=sparse)
    return replace(problem, candidates=remaining, initial=initial, lower=lower, upper=upper)
