"""Tuning: lists and references become arrays, a tuner finds weights, the weights become an ini."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba.core import event

from features.arrays import Array
from features.progress import log, progress_bar, show_status
from moses_io.errors import InputError, shown
from moses_io.weights import WeightFile, Weights, names_of_values, write_weights
from rerank import __version__
from rerank.linear.weights import START, fit_start, limits, load_weight_file, tell_unmatched, with_unseen
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.scaled import divided_start
from rerank.tuners.table import AUTO, Tuning, run
from rerank.tuning.auto import Choice
from rerank.tuning.folds import FOLDS, check_folds
from rerank.tuning.gain import Gain, Share, TriedWay
from rerank.tuning.looks import Look, ablate_all, look, look_and_choose
from rerank.tuning.tuning_set import Extracted, Lists, TuningSet


class _Teller(event.Listener):
    """Counts what is being compiled: functions have others compiled that they call."""

    _under_way = 0

    def on_start(self, event: Any) -> None:
        """Tell that something is being compiled."""
        self._under_way += 1
        show_status("compiling")

    def on_end(self, event: Any) -> None:
        """Tell when all is."""
        self._under_way -= 1
        if not self._under_way:
            show_status("compiled")


@contextmanager
def compiling_told() -> Iterator[None]:
    """Tell beside the open bar when something is compiled that was not found among what was compiled before."""
    with event.install_listener("numba:compile", _Teller()):
        yield


@dataclass(frozen=True)
class Caution:
    """Whether features are looked at on folds before they are believed in.

    Attributes:
        folds: parts of the tuning set; 0 for no look, with `auto` for as many as usual.
        fallback: write the start weights where the new features do not help; `auto` has a rule of its own.
        ablate: tell what is lost without each feature.

    Raises:
        InputError: a value of another kind, or a fallback without folds.
    """

    folds: int = 0
    fallback: bool = False
    ablate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.folds, int) or self.folds < 0 or self.folds == 1:
            raise InputError(f"folds: expected a whole number from 2, or 0 for none, found {shown(self.folds)}")
        for name, value in (("fallback", self.fallback), ("ablate", self.ablate)):
            if not isinstance(value, bool):
                raise InputError(f"{name}: expected true or false, found {shown(value)}")
        if self.fallback and not self.folds:
            raise InputError("--fallback needs --folds, which tell whether new features help")


def read_problem(files: Lists | Extracted, start: str, tuning: Tuning) -> tuple[Problem, Weights]:
    """Read what is to be tuned, and the start weights by name."""
    return _problem(files.read(Metric(tuning.metric)), load_weight_file(start), start, tuning)


def _problem(listed: TuningSet, content: WeightFile, start: str, tuning: Tuning) -> tuple[Problem, Weights]:
    """Return what is to be tuned on candidates whose statistics are those of the metric, and the initial weights.

    `start` is the path of the weight file with this content, for messages.
    """
    metric = Metric(tuning.metric)
    space = listed.candidates.space
    weights, frozen = fit_start(content, start, space)
    vector = space.vector(weights)
    lower, upper = limits(space, vector, tuning.sign, (*tuning.freeze, *frozen))
    return Problem(listed.candidates, listed.statistics, metric.formula, vector, lower=lower, upper=upper), weights


@compiling_told()
def tune(
    files: Lists | Extracted, start: str, tuning: Tuning, output: str, caution: Caution, other: Lists | None = None
) -> Gain:
    """Tune weights from start weights, write them as an ini, and return what they gained.

    Args:
        files: what weights are tuned on.
        start: the file of the start weights.
        tuning: how.
        output: the ini.
        caution: what to look at on folds.
        other: lists for `auto` to choose on; without them it does so on folds.

    Raises:
        InputError: the metric is 0 whatever the weights were; there is another list and nothing to choose; too few
            sentences to choose on, or to look at on folds.
    """
    if other and tuning.tuner != AUTO:
        raise InputError(f"a list to choose on is for the tuner {AUTO}; {tuning.tuner} chooses nothing")
    content = load_weight_file(start)
    listed = files.read(Metric(tuning.metric))
    problem, weights = _problem(listed, content, start, tuning)
    space = problem.candidates.space
    tell_unmatched(space, weights, start)
    _warn_of(listed)
    new, sentences = [name for name, _ in space.dense if name not in weights], len(problem.candidates.sentences)
    folds = min(caution.folds or FOLDS, sentences)
    if (caution.folds and tuning.tuner != AUTO) or caution.ablate:
        check_folds(folds, sentences)
    if tuning.tuner == AUTO:
        result = _by_choice(problem, tuning, new, caution.folds or FOLDS, other)
    else:
        result = _by_tuner(problem, tuning, new, folds if caution.folds else 0, caution.fallback)
    gain = _gain(problem, result, _signature(files, tuning, result, other))
    _check_matches(problem, gain, listed.advice)
    gained = f"{gain.metric} on the tuning set {gain.before:.2f} -> {gain.after:.2f}"
    log.info(f"{gained} ({sentences} sentences, {len(problem.statistics)} candidates)")
    log.info(f"signature: {gain.signature}")
    sparse = [f"sparse weights: {os.path.abspath(path)}" for path in content.files[1:]]
    remarks = [gain.signature, gained, *sparse, *result.remarks]
    tuned = with_unseen(space.weights(result.weights), weights, space)
    write_weights(output, tuned, remarks, content.untuneable)
    if caution.ablate:
        ablate_all(problem, tuning, folds)
    return gain


def _signature(files: Lists | Extracted, tuning: Tuning, result: "_Result", other: Lists | None) -> str:
    """Return the line that says how the weights were tuned."""
    chosen = f"|folds:{result.look.folds}{'|chosen:elsewhere' if other else ''}" if result.choice else ""
    metric = f"metric:{Metric(tuning.metric).signature}"
    return f"{tuning.signature}{chosen}|{metric}|{files.signature}|version:{__version__}"


def _check_matches(problem: Problem, gain: Gain, advice: Sequence[str]) -> None:
    """Raise `InputError` if no candidate matches its references, with the advice on how to make them match."""
    if not any((gain.before, gain.after, problem.formula.score(problem.statistics.sum(axis=0)))):  # ()
        hint = "; ".join(advice) or "do list and references fit (tokens, case)?"
        raise InputError(f"{gain.metric} on the tuning set is 0 whatever the weights; {hint}")


class _Result(NamedTuple):
    """Weights (size,), how far they can be trusted, how they were chosen, and what to say above them."""

    weights: Array
    look: Look
    choice: Choice | None
    remarks: list[str]


def _gain(problem: Problem, result: _Result, signature: str) -> Gain:
    trust, choice = result.look.trust, result.choice
    return Gain(
        metric=problem.formula.name,
        before=100 * problem.measure(problem.start),
        after=100 * problem.measure(result.weights),
        where=result.look.where,
        old=100 * trust.old if trust else None,
        new=100 * trust.new if trust else None,
        p=trust.p if trust else None,
        chosen=choice.way.name if choice else "",
        tried=tuple(TriedWay(each.way.name, 100 * each.score, each.p) for each in choice.tried) if choice else (),
        signature=signature,
        shares=tuple(_shares(problem, result.weights, trust.weights if trust else ())),
    )


def _shares(problem: Problem, weights: Array, folds: Sequence[Array]) -> Iterator[Share]:
    """Yield how much the weights of the dense features that are not constant count, here and in each fold."""
    spread = problem.spread()  # (dense,)
    names = [own for name, count in problem.candidates.space.dense for own in names_of_values(name, count)]
    products = np.stack([each[: len(spread)] * spread for each in (weights, *folds)])  # (1 + folds, dense)
    sums = np.abs(products).sum(axis=1, keepdims=True)  # (1 + folds, 1)
    value, *others = (products / np.where(sums > 0, sums, 1)).tolist()  # (dense,) each
    for column in np.flatnonzero(spread):
        yield Share(names[column], value[column], tuple(fold[column] for fold in others))


def _by_tuner(problem: Problem, tuning: Tuning, new: list[str], folds: int, fallback: bool) -> _Result:
    """Tune, after a look on folds if there is to be one."""
    seen = look(problem, tuning, new, folds) if folds else Look("", 0, None)
    with progress_bar(f"tune by {tuning.tuner}", None):
        tuned = run(problem, tuning)
    if len(tuned.runs) > 1:
        metrics = 100 * np.array(tuned.runs)
        log.info(
            f"{len(metrics)} runs of {tuning.tuner}: {metrics.mean():.2f} on the tuning set, ± {metrics.std():.2f}"
        )
    if not (fallback and seen.trust and not seen.trust.helps):
        return _Result(tuned.weights, seen, None, [])
    kept = f"{START} are kept: on folds the new features gain nothing"
    log.info(kept)
    untuned = seen._replace(trust=replace(seen.trust, weights=()))
    return _Result(divided_start(problem), untuned, None, [kept])


def _by_choice(problem: Problem, tuning: Tuning, new: list[str], folds: int, other: Lists | None) -> _Result:
    """Choose how to tune, or keep the start weights, where nothing else is better."""
    seen, choice = look_and_choose(problem, tuning, new, folds, other)
    remark = f"chosen: {choice.way.name}"
    if choice.way.tuner == START:
        remark = f"{START} are kept: they are better where nothing was tuned"
        log.info(remark)
    return _Result(choice.weights, seen, choice, [remark])


def _warn_of(listed: TuningSet) -> None:
    """Warn if list and references differ in form, and of features in every line that Moses' tools take for sparse."""
    for message in listed.advice:
        log.warning(message)
    candidates = listed.candidates
    for name, count in candidates.space.dense:
        if "_" in name:
            log.warning(f"feature {shown(name)} has {count} values and '_' in its name; Moses' tools tear it apart")
    counts = np.bincount(candidates.sparse.columns, minlength=len(candidates.space.sparse))  # (sparse,)
    for column in np.flatnonzero(counts == len(candidates.dense)):
        name = shown(candidates.space.sparse[column])
        log.warning(f"feature {name} is in every line, but Moses' tools take a name with '_' for a sparse feature")
