"""What is looked at on folds before features are believed in, and what is told of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from features.progress import log, progress_bar
from moses_io.errors import InputError, counted, shown
from rerank.linear.candidates import FeatureSpace
from rerank.metrics.metric import Metric
from rerank.metrics.significance import p_value
from rerank.tuners.problem import Problem
from rerank.tuners.table import AUTO, Tuning
from rerank.tuning.auto import Choice, choose
from rerank.tuning.folds import Trust, cross_validate
from rerank.tuning.tuning_set import Lists, TuningSet
from rerank.tuning.ways import Tunings


class Look(NamedTuple):
    """What was looked at: on which sentences, in how many folds, and what is gained there; None where nothing was."""

    where: str
    folds: int
    trust: Trust | None


def look(problem: Problem, tuning: Tuning, new: Sequence[str], folds: int) -> Look:
    """Tell what new features gain out of fold, if there are some."""
    if not new:
        log.info("all features have a start weight, there is nothing new to look at on folds")
        return Look("", 0, None)
    places, where = problem.candidates.space.columns_by_feature, f"out of fold, {folds} folds"
    (trust,) = cross_validate(problem, tuning, [np.concatenate([places[name] for name in new])], folds)  # (columns,)
    _tell(trust, new, f"{where}: {problem.formula.name}", "tuned anew")
    return Look(where, folds, trust)


def look_and_choose(
    problem: Problem, tuning: Tuning, new: Sequence[str], folds: int, other: Lists | None
) -> tuple[Look, Choice]:
    """Choose how to tune, on folds or on other lists, and tell what it gains."""
    places, formula = problem.candidates.space.columns_by_feature, problem.formula
    unseen = _read_other(other, Metric(tuning.metric), problem.candidates.space) if other else None
    folds, least = min(folds, len((unseen or problem).candidates.sentences)), 2 if other else 3
    if folds < least:
        raise InputError(f"{AUTO} chooses on {least} folds at least, each of a sentence or more; found {folds}")
    with progress_bar("choose how to tune", None) as bar, threadpool_limits(1, "blas"):
        choice = choose(Tunings(problem, tuning.settings, {name: places[name] for name in new}, folds, bar), unseen)
    where = f"on {', '.join(other.nbest)}" if other else f"out of fold, {folds} folds"
    log.info(f"{formula.name} by how weights are tuned, {where}:")
    for tried in choice.tried:
        log.info(f"  {100 * tried.score:6.2f}  {tried.way.name} (p {tried.p:.4f} against the mean)")
    log.info(f"chosen: {choice.way.name}")
    old, nested = (float(formula.score(each.sum(axis=0))) for each in (choice.old, choice.nested))  # (), ()
    trust = Trust(old, nested, p_value(formula.score, choice.old, choice.nested), choice.folds)
    _tell(trust, new, f"{where}, nested: {formula.name}", "as they are or tuned anew")
    return Look(where, folds, trust), choice


def _read_other(other: Lists, metric: Metric, space: FeatureSpace) -> TuningSet:
    """Read lists to choose on, which must have the dense features of those to tune on."""
    listed = other.read(metric)
    own, others = dict(space.dense), dict(listed.candidates.space.dense)
    for name in (*own, *others):
        if own.get(name, 0) != others.get(name, 0):
            counts = [counted(values.get(name, 0), "value") for values in (others, own)]
            where = ", ".join(other.nbest)
            raise InputError(
                f"{where}: feature {shown(name)} has {counts[0]} here and {counts[1]} in the list to tune on"
            )
    return listed


def _tell(trust: Trust, new: Sequence[str], where: str, anew: str) -> None:
    old, names = f"{100 * trust.old:.2f} with the features of the start {anew}", ", ".join(new)
    chosen = f"with {names}" if new else "with what was chosen"
    log.info(f"{where} {old}, {100 * trust.new:.2f} {chosen} (p {trust.p:.4f})")
    if new and not trust.helps:
        log.warning(f"the new features ({names}) do not help on sentences that were not tuned on")


def ablate_all(problem: Problem, tuning: Tuning, folds: int) -> None:
    """Tell what is lost out of fold without each feature, the others tuned anew; the largest loss first."""
    columns = problem.candidates.space.columns_by_feature
    trusts = cross_validate(problem, tuning, list(columns.values()), folds)
    log.info(f"out of fold, {folds} folds: {problem.formula.name} {100 * trusts[0].new:.2f} with all features")
    for name, trust in sorted(zip(columns, trusts, strict=True), key=lambda item: item[1].old):
        log.info(f"  without {name}: {100 * trust.old:.2f} ({100 * (trust.old - trust.new):+.2f}, p {trust.p:.4f})")
