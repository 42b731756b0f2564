"""How far a tuning can be trusted: what features gain on sentences that the weights were not tuned on.

Moses' own weights were themselves tuned on this set, so that a comparison with them would flatter the old features on
folds and the new ones on the whole; the old features are tuned anew on the same folds instead.
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
"""Folds where no number of them is given."""


@dataclass(frozen=True)
class Trust:
    """Metrics, 0 … 1, over all sentences, each with weights that were tuned on the other folds.

    Attributes:
        where: on which sentences, as notes and reports say it.
        folds: number of parts.
        old: without the features in question.
        new: with all features.
        p: how likely so large a difference is, in either direction, if there is none; whether the features help is told
            by `new` and `old` alone.
        weights: (size,) of all features, tuned without each of the folds.
    """

    where: str
    folds: int
    old: float
    new: float
    p: float
    weights: tuple[Array, ...] = ()

    @property
    def helps(self) -> bool:
        """Whether the features in question are worth something."""
        return self.new > self.old

    def report(self, new: Sequence[str], measured: str, anew: str) -> None:
        """Note what was `measured`, without and with the `new` features, and warn if these do not help.

        `anew` is how the other features were tuned where the new ones are left out.
        """
        old, names = f"{100 * self.old:.2f} with the features of the start {anew}", ", ".join(new)
        chosen = f"with {names}" if new else "with what was chosen"
        log.info(f"{measured} {old}, {100 * self.new:.2f} {chosen} (p {self.p:.4f})")
        if new and not self.helps:
            log.warning(f"the new features ({names}) do not help on sentences that were not tuned on")


def cross_validate(problem: Problem, tuning: Tuning, columns: Integers, folds: int) -> Trust:
    """Compare all features with those that are not among some columns.

    Raises:
        InputError: as of `check_folds`.
    """
    check_folds(folds, len(problem.candidates.sentences))
    with progress_bar("folds", 2 * folds) as bar:
        new, weights = out_of_fold(problem, tuning, folds, bar)
        old, _ = out_of_fold(without(problem, columns), tuning, folds, bar)
    return compare(problem.formula, f"out of fold, {folds} folds", folds, old=old, new=new, weights=weights)


def compare(formula: Formula, where: str, folds: int, *, old: Array, new: Array, weights: tuple[Array, ...]) -> Trust:
    """Compare (n, formula.size) statistics of what is chosen without and with the features in question."""
    old_metric, new_metric = (float(formula.score(each.sum(axis=0))) for each in (old, new))  # ()
    p = p_value(formula.score, old, new)
    return Trust(where, folds, old=old_metric, new=new_metric, p=p, weights=weights)


def out_of_fold(problem: Problem, tuning: Tuning, folds: int, bar: Bar) -> tuple[Array, tuple[Array, ...]]:
    """Choose for each sentence by weights tuned on the other folds.

    Returns:
        (n, formula.size) statistics of what is chosen, and the (size,) weights of each fold.
    """
    statistics = np.zeros((len(problem.candidates.sentences), problem.formula.size))
    tuned = []
    for held, weights in fold_weights(problem, tuning, folds):
        statistics[held] = problem.of(held).chosen(weights)  # (held, formula.size)
        tuned.append(weights)
        bar.advance(1, "")
    return statistics, tuple(tuned)


def fold_weights(problem: Problem, tuning: Tuning, folds: int) -> Iterator[tuple[Integers, Array]]:
    """Yield the sentences of each fold, and the (size,) weights that are tuned on the other folds."""
    sentences = len(problem.candidates.sentences)
    for held in partition(sentences, folds):
        yield held, run(problem.of(np.setdiff1d(np.arange(sentences), held)), tuning).weights


def check_folds(folds: int, sentences: int) -> None:
    """Refuse fewer folds than two, which leave nothing to tune on, and more than there are sentences."""
    if sentences < 2:
        raise InputError(f"folds: expected a list of 2 sentences or more, found {sentences}")
    if not 2 <= folds <= sentences:
        raise InputError(f"folds: expected a whole number from 2 to the {sentences} sentences, found {folds}")


def partition(sentences: int, folds: int) -> list[Integers]:
    """Divide sentences at random into folds, always the same ones.

    Raises:
        InputError: as of `check_folds`.
    """
    check_folds(folds, sentences)
    order = np.random.default_rng(0).permutation(sentences)  # (sentences,)
    return np.array_split(order, folds)


def without(problem: Problem, columns: Integers) -> Problem:
    """Return the problem with 0 in some columns, and as their start weights."""
    candidates, start = problem.candidates, problem.start.copy()
    dense, size = candidates.dense.copy(), candidates.space.dense_size
    start[columns], dense[:, columns[columns < size]] = 0, 0
    lower, upper = (bound.copy() for bound in problem.bounds())
    lower[columns[columns < size]] = upper[columns[columns < size]] = 0
    kept = ~np.isin(candidates.sparse.columns + size, columns)
    sparse = candidates.sparse._replace(values=candidates.sparse.values * kept)
    left = replace(candidates, dense=dense, sparse=sparse)
    return replace(problem, candidates=left, start=start, lower=lower, upper=upper)
