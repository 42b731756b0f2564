"""`--tuner auto`: the mean of three tuners, unless an alternative is significantly better on held-out sentences.

The tuner with the highest cross-validated score is often first by chance, and on other sentences worse than the mean of
the three (`docs/lab/tuning-figures.md`). Therefore:

* An alternative replaces the mean only if it is significantly better (p below `SURE`, corrected for multiple
  comparisons).
* The initial weights are kept only if they are better than the mean with a p below `LIKELY`.
* If no feature is new, cross-validation does not compare the initial weights: they were tuned for these features on all
  folds, so their score is not held out. The mean is interpolated with them anyway.

The reported gain of the choice comes from nested cross-validation: for each fold, the method is chosen and tuned
without this fold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from features.arrays import Array, Integers
from features.progress import Bar, log, progress_bar
from moses_io.files.errors import InputError, counted, shown
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import INITIAL
from rerank.metrics.metric import Metric
from rerank.metrics.significance import p_value as significance
from rerank.tuners import expected, mean
from rerank.tuners.mean import MEAN
from rerank.tuners.problem import Problem, ScaledProblem, normalized_initial_weights
from rerank.tuners.table import AUTO, Tuning
from rerank.tuning.folds import LIKELY, CrossValidation, compare, partition, usable_folds, without
from rerank.tuning.gain import ComparedTuner
from rerank.tuning.tuning_set import Lists, TuningSet

LARGER_RIDGE = {f"expected, ridge {ridge:g}": ridge for ridge in (1e-3, 1e-2)}
"""Variants of `expected` with a larger ridge than its default, which keeps weights nearer to the initial weights."""

SURE = 0.05
"""Largest two-sided p-value for which an alternative replaces the mean.

It is divided by the number of alternatives (Bonferroni correction).
"""


@dataclass(frozen=True)
class Method:
    """A method to find weights: a tuner, or the mean of several tuners' weights, optionally without some features.

    Attributes:
        tuner: a key of `rerank.tuners.mean.tune_all` or of `LARGER_RIDGE`, or `INITIAL` for the initial weights.
        dropped: labels of the omitted features.
        retuned: whether the other features are tuned without the dropped ones. If False, the dropped weights are set
            to 0 after a tuning with all features.
        dropped_name: name of the dropped features in messages. Default: their labels.
    """

    tuner: str
    dropped: tuple[str, ...] = ()
    retuned: bool = True
    dropped_name: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """Name in messages and reports."""
        without_these = self.dropped_name or ", ".join(self.dropped)
        return f"{self.tuner} without {without_these}" if self.dropped else self.tuner


@dataclass
class Tunings:
    """Cache of the weights of each method, tuned without some folds of a list.

    Each tuning runs when its weights are first requested.

    Attributes:
        problem: the tuning problem with all features.
        settings: settings of the mean of tuners.
        columns: dense columns of each new feature, by its label.
        folds: number of folds.
        bar: progress bar, advanced at each tuning.
    """

    problem: Problem
    settings: mean.MeanSettings
    columns: dict[str, Integers]
    folds: int
    bar: Bar
    _tuned: dict[tuple[tuple[str, ...], frozenset[int]], dict[str, Array]] = field(default_factory=dict)

    def weights(self, method: Method, excluded: frozenset[int] = frozenset()) -> Array:
        """Return the (size,) weights of a method, tuned without the `excluded` folds."""
        if method.tuner == INITIAL:
            return normalized_initial_weights(self.problem)
        key = (method.dropped if method.retuned else (), excluded)
        if key not in self._tuned:
            self._tuned[key] = self._tune(*key)
            self.bar.advance(1, "")
        weights = self._tuned[key][method.tuner].copy()
        if not method.retuned:
            weights[self._columns_of(method.dropped)] = 0
        return weights

    def parts(self) -> list[Integers]:
        """Return the sentence indices of each fold."""
        return partition(len(self.problem.candidates.sentences), self.folds)

    def _columns_of(self, labels: tuple[str, ...]) -> Integers:
        return np.concatenate([self.columns[label] for label in labels])  # (columns,)

    def _tune(self, dropped: tuple[str, ...], excluded: frozenset[int]) -> dict[str, Array]:
        """Return the weights of all tuners by name. If features are dropped, `LARGER_RIDGE` is not run."""
        problem = without(self.problem, self._columns_of(dropped)) if dropped else self.problem
        if excluded:
            kept = [part for number, part in enumerate(self.parts()) if number not in excluded]
            problem = problem.subset(np.sort(np.concatenate(kept)))  # (kept sentences,)
        scaled = ScaledProblem(problem)
        if not scaled.tunable:
            return dict.fromkeys((*mean.tuner_names(problem), *LARGER_RIDGE), scaled.mean([scaled.problem.initial]))
        weights = mean.tune_all(scaled.problem, self.settings)
        for name, ridge in {} if dropped else LARGER_RIDGE.items():
            weights[name] = expected.tune(scaled.problem, expected.ExpectedSettings(ridge=ridge)).weights
        return {name: scaled.mean([each]) for name, each in weights.items()}


class HeldOut:
    """Scores of methods on held-out sentences, which their weights were not tuned on.

    The sentences are either the ones of the tuning set, each with weights tuned without its fold, or the ones of
    another list with references, on which nothing is tuned.

    Attributes:
        parts: indices of the sentences of each fold.
        compares_initial: whether the initial weights can be compared with other weights. They were tuned on the tuning
            set and seem better than they are in its cross-validation. So they are compared only on another list, or if
            there are new features, which give the tuned weights an advantage of their own.
    """

    def __init__(self, tunings: Tunings, selection: TuningSet | None) -> None:
        self._tunings, self._selection = tunings, selection
        sentences = (selection or tunings.problem).candidates.sentences
        self.parts = partition(len(sentences), tunings.folds)
        self.compares_initial = selection is not None or bool(tunings.columns)
        self._score = tunings.problem.formula.score
        self._problems = [] if selection else [tunings.problem.subset(part) for part in self.parts]
        self._chosen: dict[Method, Array] = {}

    def fold(self, method: Method, number: int, excluded: int | None = None) -> Array:
        """Return the (held_out, formula.size) statistics of the candidates that a method chooses in a fold.

        In cross-validation the weights are tuned without this fold and without the fold `excluded`.
        """
        if self._selection:
            if method not in self._chosen:
                space = self._tunings.problem.candidates.space
                weights = space.weights(self._tunings.weights(method))
                self._chosen[method] = self._selection.chosen(weights)  # (n, formula.size)
            return self._chosen[method][self.parts[number]]
        left_out = frozenset([number] if excluded is None else [number, excluded])
        return self._problems[number].chosen(self._tunings.weights(method, left_out))

    def rest(self, method: Method, excluded: int | None) -> Array:
        """Return the (m, formula.size) statistics of the choices of a method in all folds except `excluded`.

        In cross-validation each fold is measured with weights tuned without it and without the fold `excluded`.
        """
        numbers = [number for number in range(len(self.parts)) if number != excluded]
        return np.concatenate([self.fold(method, number, excluded) for number in numbers])  # (m, formula.size)

    def score(self, method: Method, excluded: int | None) -> float:
        """Return the metric, at most 1, of a method on all folds except `excluded`."""
        return float(self._score(self.rest(method, excluded).sum(axis=0)))  # ()

    def p_value(self, method: Method, other: Method, excluded: int | None) -> float:
        """Return the p-value of the difference between two methods on all folds except `excluded`."""
        return significance(self._score, self.rest(method, excluded), self.rest(other, excluded))

    def better(self, method: Method, other: Method, excluded: int | None, max_p_value: float) -> bool:
        """Return whether a method beats another on all folds except `excluded`, with a p-value below `max_p_value`."""
        higher = self.score(method, excluded) > self.score(other, excluded)
        return higher and self.p_value(method, other, excluded) < max_p_value

    def nested(self, choose: Callable[[int], Method]) -> Array:
        """Return the (n, formula.size) statistics in nested cross-validation, in the order of the sentences.

        Args:
            choose: returns the method for a fold, chosen without this fold.
        """
        folds = [
            self.fold(choose(number), number) for number in range(len(self.parts))
        ]  # each (held_out, formula.size)
        return np.concatenate(folds)[np.argsort(np.concatenate(self.parts))]  # (n, formula.size)


@dataclass(frozen=True)
class Choice:
    """Result of the choice of a tuning method.

    Attributes:
        method: the chosen method.
        weights: (size,) weights that the method tunes on the whole tuning set.
        compared: all compared methods, best first.
        nested: (n, formula.size) statistics in nested cross-validation of the choice.
        old: (n, formula.size) statistics with the initial weights or, if it is better, with the cross-validated mean of
            tuners without the new features.
        folds: (size,) weights that the method tunes without each fold. Empty if the choice was made on another list.
    """

    method: Method
    weights: Array
    compared: tuple[ComparedTuner, ...]
    nested: Array
    old: Array
    folds: tuple[Array, ...]

    @property
    def comment(self) -> str:
        """Comment line above the weights in their file."""
        if self.method.tuner == INITIAL:
            return f"{INITIAL} are kept: they score higher on sentences not used for tuning"
        return f"chosen: {self.method.name}"


def choose(tunings: Tunings, selection: TuningSet | None) -> Choice:
    """Choose how to tune, by cross-validation on the tuning set or, if given, on another list."""
    held_out = HeldOut(tunings, selection)
    methods = _methods(tunings, held_out, None)
    method = _best(held_out, methods, None)
    compared = [*methods, *([Method(INITIAL)] if held_out.compares_initial else [])]
    tried = [
        ComparedTuner(each.name, 100 * held_out.score(each, None), held_out.p_value(each, methods[0], None))
        for each in compared
    ]
    return Choice(
        method=method,
        weights=tunings.weights(method),
        compared=tuple(sorted(tried, key=lambda each: -each.score)),
        nested=held_out.nested(lambda excluded: _best(held_out, _methods(tunings, held_out, excluded), excluded)),
        old=_old(tunings, held_out),
        folds=() if selection else tuple(tunings.weights(method, frozenset([fold])) for fold in range(tunings.folds)),
    )


def _old(tunings: Tunings, held_out: HeldOut) -> Array:
    """Return the (n, formula.size) statistics of the candidates chosen without the new features.

    The weights are the better of the initial weights and the mean of tuners without the new features. Otherwise, if
    tuning again made the old features worse, the difference would be attributed to the new features.
    """
    methods = [Method(INITIAL), *([Method(MEAN, tuple(tunings.columns))] if tunings.columns else [])]
    return held_out.nested(lambda _: max(methods, key=lambda method: held_out.score(method, None)))


def _methods(tunings: Tunings, held_out: HeldOut, excluded: int | None) -> list[Method]:
    """Return the tuning methods to compare: the mean of tuners first, then its alternatives.

    Alternatives are single tuners, a larger ridge, the mean without the new features, and the mean without the harmful
    features. A new feature is harmful if the score rises when its weight is set to 0 and the others stay as they are.
    """
    new, mean_score = tuple(tunings.columns), held_out.score(Method(MEAN), excluded)
    harmful = tuple(
        label for label in new if held_out.score(Method(MEAN, (label,), retuned=False), excluded) > mean_score
    )
    with_fewer_features = [Method(MEAN, new, dropped_name="the new features")] if new else []
    with_fewer_features += [Method(MEAN, harmful)] if harmful not in ((), new) else []
    return [
        Method(MEAN),
        *(Method(name) for name in (*mean.tuner_names(tunings.problem), *LARGER_RIDGE) if name != MEAN),
        *with_fewer_features,
    ]


def _best(held_out: HeldOut, methods: list[Method], excluded: int | None) -> Method:
    """Return the best method on all folds except `excluded`: the first one unless another is significantly better.

    The initial weights replace this method if they can be compared and are better with a p-value below `LIKELY`.
    """
    default, initial = methods[0], Method(INITIAL)
    alternatives = sorted(methods[1:], key=lambda method: -held_out.score(method, excluded))
    best = next(
        (method for method in alternatives if held_out.better(method, default, excluded, SURE / len(alternatives))),
        default,
    )
    return initial if held_out.compares_initial and held_out.better(initial, best, excluded, LIKELY) else best


def choose_and_log(
    problem: Problem, tuning: Tuning, new: Sequence[str], folds: int, selection: Lists | None
) -> tuple[Choice, CrossValidation]:
    """Choose how to tune, in cross-validation or on other lists, and log the comparison and the gain.

    Args:
        problem: the tuning problem.
        tuning: settings of the tuning, with the tuner `auto`.
        new: names of the features without an initial weight.
        folds: number of folds.
        selection: lists to choose on. None: choose in cross-validation.

    Raises:
        InputError: too few folds or sentences, or the dense features of the other lists differ.
    """
    columns, formula = problem.candidates.space.columns_by_feature, problem.formula
    held_out = _read_selection(selection, Metric(tuning.metric), problem.candidates.space) if selection else None
    folds = usable_folds(folds, len((held_out or problem).candidates.sentences))
    least = 2 if selection else 3  # nested cross-validation leaves out two folds and tunes on the rest
    if folds < least:
        raise InputError(f"{AUTO} needs at least {least} folds of at least one sentence, found {folds}")
    with progress_bar("compare tuners", None) as bar, threadpool_limits(1, "blas"):
        choice = choose(Tunings(problem, tuning.settings, {name: columns[name] for name in new}, folds, bar), held_out)
    measured = f"on {', '.join(selection.nbest)}" if selection else f"in {folds}-fold cross-validation"
    log.info(f"comparison of tuners, {formula.name} {measured}:")
    for tried in choice.compared:
        log.info(f"  {tried.score:6.2f}  {tried.name} (p {tried.p_value:.4f} against the mean)")
    log.info(f"chosen: {choice.method.name}")
    validated = compare(formula, measured, folds, old=choice.old, new=choice.nested, weights=choice.folds)
    validated.report(new, f"{formula.name} {measured}, nested", "initial weights, or other weights tuned again")
    if choice.method.tuner == INITIAL:
        log.info(choice.comment)
    return choice, validated


def _read_selection(selection: Lists, metric: Metric, space: FeatureSpace) -> TuningSet:
    """Read the lists to choose on. Raises `InputError` if their dense features differ from the tuning set's."""
    tuning_set = selection.read(metric)
    own_counts, other_counts = dict(space.dense), dict(tuning_set.candidates.space.dense)
    for name in (*own_counts, *other_counts):
        if own_counts.get(name, 0) != other_counts.get(name, 0):
            here, there = (counted(values.get(name, 0), "value") for values in (other_counts, own_counts))
            where = ", ".join(selection.nbest)
            raise InputError(f"{where}: feature {shown(name)} has {here} here and {there} in the list to tune on")
    return tuning_set
