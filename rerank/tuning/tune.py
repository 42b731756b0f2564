"""Tuning: lists and references become arrays, a tuner finds weights, the weights become an ini."""

from dataclasses import dataclass

import numpy as np

from features.arrays import Integers
from features.progress import note, warn
from moses_io.errors import InputError, shown
from moses_io.weights import Weights, write_weights
from rerank import __version__
from rerank.candidates import Candidates, FeatureSpace
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem, Tuned
from rerank.tuners.scaled import ScaledProblem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import Trust, cross_validate
from rerank.tuning.tuning_set import Extracted, Lists
from rerank.weights import compare, limits, read_start

FOLDS = 5


@dataclass(frozen=True)
class Caution:
    """Whether features are looked at on folds before they are believed in.

    Attributes:
        folds: parts of the tuning set; 0 for no look.
        fallback: write the start weights where the new features do not help.
        ablate: tell what is lost without each feature.

    Raises:
        InputError: a fallback without folds.
    """

    folds: int = 0
    fallback: bool = False
    ablate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.folds, int) or self.folds < 0 or self.folds == 1:
            raise InputError(f"folds: expected a whole number from 2, or 0 for none, found {shown(self.folds)}")
        if self.fallback and not self.folds:
            raise InputError("--fallback needs --folds, which tell whether new features help")


@dataclass(frozen=True)
class Gain:
    """What a tuning gained; metrics are times 100, higher is better.

    Attributes:
        metric: its name.
        before: of the best candidates of the tuning set under the start weights.
        after: the same under the weights that were written.
        old: out of fold, without the new features, the others tuned anew; None without folds, or without new features.
        new: the same with all features.
        p: how likely so large a difference of these two is, in either direction, if there is none.
        signature: what made the weights.
    """

    metric: str
    before: float
    after: float
    old: float | None
    new: float | None
    p: float | None
    signature: str


def read_problem(files: Lists | Extracted, start: str, tuning: Tuning) -> tuple[Problem, Weights]:
    """Read what is to be tuned, and the start weights by name."""
    metric = Metric(tuning.metric)
    listed = files.read(metric)
    space = listed.candidates.space
    weights, frozen = read_start(start, space)
    vector = space.vector(weights)
    lower, upper = limits(space, vector, tuning.sign, (*tuning.freeze, *frozen))
    return Problem(listed.candidates, listed.statistics, metric.formula, vector, lower=lower, upper=upper), weights


def tune(files: Lists | Extracted, start: str, tuning: Tuning, output: str, caution: Caution) -> Gain:
    """Tune weights from start weights, write them as an ini, and return what they gained.

    Raises:
        InputError: the metric is 0 whatever the weights were.
    """
    problem, weights = read_problem(files, start, tuning)
    space, name = problem.candidates.space, problem.formula.name
    compare(space, weights, start)
    _warn_of_names(problem.candidates)
    new = [name for name, _ in space.dense if name not in weights]
    folds = min(caution.folds, len(problem.candidates.sentences))
    trust = _look(problem, tuning, new, folds) if folds else None
    if caution.ablate:
        _ablate(problem, tuning, caution.folds or FOLDS)
    before, tuned, kept = problem.measure(problem.start), run(problem, tuning), []
    if len(tuned.runs) > 1:
        metrics = 100 * np.array(tuned.runs)
        note(f"{len(metrics)} runs of {tuning.tuner}: {metrics.mean():.2f} on the tuning set, ± {metrics.std():.2f}")
    if max(tuned.metric, before) == 0:
        hint = "do list and references fit (tokens, case)?"
        raise InputError(f"{name} on the tuning set is 0 whatever the weights; {hint}")
    if caution.fallback and trust and not trust.helps:
        kept = ["the start weights are kept: on folds the new features gain nothing"]
        note(kept[0])
        scaled = ScaledProblem(problem)
        tuned = Tuned(scaled.mean([scaled.problem.start]), before)
    signature = f"{tuning.signature}|metric:{Metric(tuning.metric).signature}|{files.signature}|version:{__version__}"
    gain = f"{name} on the tuning set {100 * before:.2f} -> {100 * tuned.metric:.2f}"
    note(f"{gain} ({len(problem.candidates.sentences)} sentences, {len(problem.statistics)} candidates)")
    note(f"signature: {signature}")
    write_weights(output, space.weights(tuned.weights), [signature, gain, *kept])
    return Gain(
        metric=name,
        before=100 * before,
        after=100 * tuned.metric,
        old=100 * trust.old if trust else None,
        new=100 * trust.new if trust else None,
        p=trust.p if trust else None,
        signature=signature,
    )


def _look(problem: Problem, tuning: Tuning, new: list[str], folds: int) -> Trust | None:
    """Tell what new features gain out of fold, if there are some."""
    if not new:
        note("all features have a start weight, there is nothing new to look at on folds")
        return None
    places = groups(problem.candidates.space)
    (trust,) = cross_validate(problem, tuning, [np.concatenate([places[name] for name in new])], folds)  # (columns,)
    note(
        f"out of fold, {folds} folds: {problem.formula.name} {100 * trust.old:.2f} with the features of the start "
        f"tuned anew, {100 * trust.new:.2f} with {', '.join(new)} (p {trust.p:.4f})"
    )
    if not trust.helps:
        warn(f"the new features ({', '.join(new)}) do not help on sentences that were not tuned on")
    return trust


def _ablate(problem: Problem, tuning: Tuning, folds: int) -> None:
    """Tell what is lost out of fold without each feature, the others tuned anew; the largest loss first."""
    columns = groups(problem.candidates.space)
    trusts = cross_validate(problem, tuning, list(columns.values()), folds)
    note(f"out of fold, {folds} folds: {problem.formula.name} {100 * trusts[0].new:.2f} with all features")
    for name, trust in sorted(zip(columns, trusts, strict=True), key=lambda item: item[1].old):
        note(f"  without {name}: {100 * trust.old:.2f} ({100 * (trust.old - trust.new):+.2f}, p {trust.p:.4f})")


def groups(space: FeatureSpace) -> dict[str, Integers]:
    """Return the columns of each dense feature by its name, and of all sparse ones together."""
    dense = space.columns[: space.dense_size]
    names = np.array([*dense, *["sparse features"] * len(space.sparse)])
    return {str(name): np.flatnonzero(names == name) for name in dict.fromkeys(names)}


def _warn_of_names(candidates: Candidates) -> None:
    """Name features that are in every line but have a name that Moses' tools take for a sparse one."""
    for name, count in candidates.space.dense:
        if "_" in name:
            warn(f"feature {shown(name)} has {count} values and '_' in its name; Moses' tools tear it apart")
    counts = np.bincount(candidates.sparse.columns, minlength=len(candidates.space.sparse))  # (sparse,)
    for column in np.flatnonzero(counts == len(candidates.dense)):
        name = shown(candidates.space.sparse[column])
        warn(f"feature {name} is in every line, but Moses' tools take a name with '_' for a sparse feature")
