"""Ways to find weights, and what each of them chooses for sentences that it was not tuned on."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from features.arrays import Array, Integers
from features.progress import Bar
from rerank.linear.weights import START
from rerank.metrics.significance import p_value
from rerank.tuners import expected, mean
from rerank.tuners.problem import Problem
from rerank.tuners.scaled import ScaledProblem, divided_start
from rerank.tuning.folds import partition, without
from rerank.tuning.tuning_set import TuningSet

HELD = {f"expected, ridge {ridge:g}": ridge for ridge in (1e-3, 1e-2)}
"""Tunings that are held nearer to the start than `expected` is by default."""


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

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tuners and means of them."""
        return mean.names(self.problem)

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
