"""`--tuner auto`: the mean of three tuners, unless something else is surely better where nothing was tuned.

What is highest on folds is so by chance as much as by merit: where a tuner is chosen for that alone, it is worth less
elsewhere than the mean over which it was chosen (`docs/lab/tuning-figures.md`). So a lead over the mean must be sure.
That of the weights that tuning starts from must be likely at least; to keep them for less loses more elsewhere than it
saves. Where no feature is new they were tuned for the very same features, on the very sentences of all folds, and their
lead there says nothing; the mean is drawn to them.

What is told of the choice is measured on nested folds: of each fold what is chosen by a way which was itself chosen,
and tuned, without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from features.arrays import Array, Integers
from features.progress import Bar, log, progress_bar
from moses_io.files.errors import InputError, counted, shown
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import START
from rerank.metrics.metric import Metric
from rerank.metrics.significance import p_value
from rerank.tuners import expected, mean
from rerank.tuners.mean import MEAN
from rerank.tuners.problem import Problem, ScaledProblem, divided_start
from rerank.tuners.table import AUTO, Tuning
from rerank.tuning.folds import Trust, compare, partition, without
from rerank.tuning.gain import TriedWay
from rerank.tuning.tuning_set import Lists, TuningSet

HELD = {f"expected, ridge {ridge:g}": ridge for ridge in (1e-3, 1e-2)}
"""Tunings that are held nearer to the start than `expected` is by default."""

SURE, LIKELY = 0.05, 0.3
"""Largest p, in either direction, of a lead over the mean that is believed; that of the start weights.

There are several other ways: each is believed below its share of `SURE` (Bonferroni).
"""


@dataclass(frozen=True)
class Way:
    """A way to find weights: by a tuner or a mean of some, without some of the features.

    Attributes:
        tuner: a name of `rerank.tuners.mean.several`, of `HELD`, or `START`.
        dropped: labels of the features that get no weight.
        anew: whether the others are tuned without these; else theirs are set to 0 afterwards.
        called: what these features are called together, if not by their labels.
    """

    tuner: str
    dropped: tuple[str, ...] = ()
    anew: bool = True
    called: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What it is called in notes and reports."""
        without_these = self.called or ", ".join(self.dropped)
        return f"{self.tuner} without {without_these}" if self.dropped else self.tuner


@dataclass
class Tunings:
    """The weights of ways on all of a list but some of its folds; each is tuned once, when it is first asked for.

    Attributes:
        problem: the list.
        settings: those of the mean.
        columns: the columns of each feature by its label.
        folds: number of parts.
        bar: goes forward at each tuning.
    """

    problem: Problem
    settings: mean.MeanSettings
    columns: dict[str, Integers]
    folds: int
    bar: Bar
    _tuned: dict[tuple[tuple[str, ...], frozenset[int]], dict[str, Array]] = field(default_factory=dict)

    def weights(self, way: Way, aside: frozenset[int] = frozenset()) -> Array:
        """(size,) what a way finds without the folds aside."""
        if way.tuner == START:
            return divided_start(self.problem)
        key = (way.dropped if way.anew else (), aside)
        if key not in self._tuned:
            self._tuned[key] = self._tune(*key)
            self.bar.advance(1, "")
        weights = self._tuned[key][way.tuner].copy()
        if not way.anew:
            weights[self._places(way.dropped)] = 0
        return weights

    def parts(self) -> list[Integers]:
        """Return the sentences of each fold."""
        return partition(len(self.problem.candidates.sentences), self.folds)

    def _places(self, labels: tuple[str, ...]) -> Integers:
        return np.concatenate([self.columns[label] for label in labels])  # (columns,)

    def _tune(self, dropped: tuple[str, ...], aside: frozenset[int]) -> dict[str, Array]:
        """Tune by all tuners; those that are held nearer to the start with all features alone."""
        problem = without(self.problem, self._places(dropped)) if dropped else self.problem
        kept = [part for number, part in enumerate(self.parts()) if number not in aside]
        scaled = ScaledProblem(problem.of(np.sort(np.concatenate(kept))))  # (kept sentences,)
        if not scaled.tunable:
            return dict.fromkeys((*mean.names(problem), *HELD), scaled.mean([scaled.problem.start]))
        weights = mean.several(scaled.problem, self.settings)
        for name, ridge in {} if dropped else HELD.items():
            weights[name] = expected.tune(scaled.problem, expected.ExpectedSettings(ridge=ridge)).weights
        return {name: scaled.mean([each]) for name, each in weights.items()}


class Unseen:
    """Sentences in folds, each measured by weights that it had no part in.

    They are those of the list that is tuned on, each by weights that were tuned without its fold; or those of another
    list with references, on which nothing is tuned.

    Attributes:
        parts: the places of the sentences of each fold.
        fair_to_start: whether the start weights can be compared with others here. They were tuned on the list, and on
            folds of it seem better than they are, unless tuned weights have new features to set against that.
    """

    def __init__(self, tunings: Tunings, other: TuningSet | None) -> None:
        self._tunings, self._other = tunings, other
        self.parts = partition(len(other.candidates.sentences), tunings.folds) if other else tunings.parts()
        self.fair_to_start = other is not None or bool(tunings.columns)
        self._score = tunings.problem.formula.score
        self._problems = [] if other else [tunings.problem.of(part) for part in self.parts]
        self._chosen: dict[Way, Array] = {}

    def fold(self, way: Way, number: int, aside: int | None = None) -> Array:
        """(held, formula.size) statistics of what a way chooses in a fold, without knowing it nor the fold aside."""
        if self._other:
            if way not in self._chosen:
                space = self._tunings.problem.candidates.space
                self._chosen[way] = self._other.chosen(space.weights(self._tunings.weights(way)))  # (n, formula.size)
            return self._chosen[way][self.parts[number]]
        unknown = frozenset([number] if aside is None else [number, aside])
        return self._problems[number].chosen(self._tunings.weights(way, unknown))

    def rest(self, way: Way, aside: int | None) -> Array:
        """(m, formula.size) statistics of what a way chooses in all folds but the one aside, without knowing that."""
        numbers = [number for number in range(len(self.parts)) if number != aside]
        return np.concatenate([self.fold(way, number, aside) for number in numbers])  # (m, formula.size)

    def reached(self, way: Way, aside: int | None) -> float:
        """Return the metric, 0 … 1, of `rest`."""
        return float(self._score(self.rest(way, aside).sum(axis=0)))  # ()

    def p(self, way: Way, other: Way, aside: int | None) -> float:
        """Return the p of the difference of two ways."""
        return p_value(self._score, self.rest(way, aside), self.rest(other, aside))

    def better(self, way: Way, other: Way, aside: int | None, most: float) -> bool:
        """Tell whether a way reaches more than another, with a p below `most`."""
        return self.reached(way, aside) > self.reached(other, aside) and self.p(way, other, aside) < most

    def nested(self, choose: Callable[[int], Way]) -> Array:
        """(n, formula.size) statistics of each fold by a way chosen without knowing it, in the order of sentences."""
        folds = [self.fold(choose(number), number) for number in range(len(self.parts))]  # each (held, formula.size)
        return np.concatenate(folds)[np.argsort(np.concatenate(self.parts))]  # (n, formula.size)


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        way: how to tune.
        weights: (size,) tuned in that way on the whole list.
        tried: the ways, what reaches most first.
        nested: (n, formula.size) statistics of what is chosen for each sentence by a way chosen and tuned without it.
        old: the same by the start weights or, if it is better, by the mean without the new features.
        folds: (size,) weights tuned in that way without each fold of the list; none where another one was chosen on.
    """

    way: Way
    weights: Array
    tried: tuple[TriedWay, ...]
    nested: Array
    old: Array
    folds: tuple[Array, ...]

    @property
    def remark(self) -> str:
        """What stands above the weights."""
        if self.way.tuner == START:
            return f"{START} are kept: they are better where nothing was tuned"
        return f"chosen: {self.way.name}"


def choose(tunings: Tunings, other: TuningSet | None) -> Choice:
    """Choose how to tune, on folds of the list that is tuned on, or on another one."""
    unseen = Unseen(tunings, other)
    ways = _ways(tunings, unseen, None)
    way = _best(unseen, ways, None)
    compared = [*ways, *([Way(START)] if unseen.fair_to_start else [])]
    tried = [TriedWay(each.name, 100 * unseen.reached(each, None), unseen.p(each, ways[0], None)) for each in compared]
    return Choice(
        way=way,
        weights=tunings.weights(way),
        tried=tuple(sorted(tried, key=lambda each: -each.score)),
        nested=unseen.nested(lambda aside: _best(unseen, _ways(tunings, unseen, aside), aside)),
        old=_old(tunings, unseen),
        folds=() if other else tuple(tunings.weights(way, frozenset([fold])) for fold in range(tunings.folds)),
    )


def _old(tunings: Tunings, unseen: Unseen) -> Array:
    """(n, formula.size) statistics of what is chosen without the new features.

    It is the better of two, so that no gain of the start weights over what is tuned anew is taken for one of features.
    """
    ways = [Way(START), *([Way(MEAN, tuple(tunings.columns))] if tunings.columns else [])]
    return unseen.nested(lambda _: max(ways, key=lambda way: unseen.reached(way, None)))


def _ways(tunings: Tunings, unseen: Unseen, aside: int | None) -> list[Way]:
    """Return the mean, and what may be better: one tuner, more ridge, no new features, none that seem to harm.

    A feature seems to harm where more is reached with its weight set to 0, the others as they are.
    """
    new, usual = tuple(tunings.columns), unseen.reached(Way(MEAN), aside)
    harmful = tuple(label for label in new if unseen.reached(Way(MEAN, (label,), anew=False), aside) > usual)
    fewer = [Way(MEAN, new, called="the new features")] if new else []
    fewer += [Way(MEAN, harmful)] if harmful not in ((), new) else []
    return [Way(MEAN), *(Way(name) for name in (*mean.names(tunings.problem), *HELD) if name != MEAN), *fewer]


def _best(unseen: Unseen, ways: list[Way], aside: int | None) -> Way:
    """Return the first of the ways unless another is surely, or the start likely, better; the fold aside is unknown."""
    usual, start = ways[0], Way(START)
    leaders = sorted(ways[1:], key=lambda way: -unseen.reached(way, aside))
    best = next((way for way in leaders if unseen.better(way, usual, aside, SURE / len(leaders))), usual)
    return start if unseen.fair_to_start and unseen.better(start, best, aside, LIKELY) else best


def choose_and_tell(
    problem: Problem, tuning: Tuning, new: Sequence[str], folds: int, other: Lists | None
) -> tuple[Choice, Trust]:
    """Choose how to tune, on folds or on other lists, and tell what it gains."""
    columns, formula = problem.candidates.space.columns_by_feature, problem.formula
    unseen = _read_other(other, Metric(tuning.metric), problem.candidates.space) if other else None
    folds = min(folds, len((unseen or problem).candidates.sentences))
    least = 2 if other else 3
    if folds < least:
        raise InputError(f"{AUTO} chooses on {least} folds at least, each of a sentence or more; found {folds}")
    with progress_bar("choose how to tune", None) as bar, threadpool_limits(1, "blas"):
        choice = choose(Tunings(problem, tuning.settings, {name: columns[name] for name in new}, folds, bar), unseen)
    where = f"on {', '.join(other.nbest)}" if other else f"out of fold, {folds} folds"
    log.info(f"{formula.name} by how weights are tuned, {where}:")
    for tried in choice.tried:
        log.info(f"  {tried.score:6.2f}  {tried.name} (p {tried.p:.4f} against the mean)")
    log.info(f"chosen: {choice.way.name}")
    trust = compare(formula, where, folds, old=choice.old, new=choice.nested, weights=choice.folds)
    trust.report(new, f"{where}, nested: {formula.name}", "as they are or tuned anew")
    if choice.way.tuner == START:
        log.info(choice.remark)
    return choice, trust


def _read_other(other: Lists, metric: Metric, space: FeatureSpace) -> TuningSet:
    """Read lists to choose on, which must have the dense features of those to tune on."""
    tuning_set = other.read(metric)
    own, others = dict(space.dense), dict(tuning_set.candidates.space.dense)
    for name in (*own, *others):
        if own.get(name, 0) != others.get(name, 0):
            here, there = (counted(values.get(name, 0), "value") for values in (others, own))
            where = ", ".join(other.nbest)
            raise InputError(f"{where}: feature {shown(name)} has {here} here and {there} in the list to tune on")
    return tuning_set
