"""Confidence is fitted on dev, on choices by weights that were tuned on other sentences; its fit is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.progress import log, progress_bar
from moses_io.nbest import pool, read_moses_output
from moses_io.weights import read_weights
from rerank.confidence.confidence import Confidence, Fit, Part, write_confidence
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import Regression, fit_logistic, fit_score, probabilities
from rerank.linear.candidates import Candidates
from rerank.linear.selection import Estimate, Ranking
from rerank.linear.weights import fingerprint, kept_start
from rerank.metrics.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.folds import FOLDS, fold_weights, partition
from rerank.tuning.tuning_set import Lists, read_problem

PARTS = 4
"""Into which sentences, and changes, are divided by what was estimated of them."""


class Outcome(NamedTuple):
    """What was estimated of n sentences, and what came out.

    Attributes:
        expected: (n,) scores, 0 … 100.
        helped: (n,) probabilities that the change helped, nan where there was none.
        alone: (n,) values of the single predictor.
        reached: (n,) scores, 0 … 100.
        gains: (n,) the same minus those of Moses' choices.
    """

    expected: Array
    helped: Array
    alone: Array
    reached: Array
    gains: Array

    def fit(self) -> Fit:
        """Hold the one against the other."""
        decided = ~np.isnan(self.helped) & (self.gains != 0)  # (n,)
        return Fit(
            correlation=correlation(self.expected, self.reached),
            alone=abs(correlation(self.alone, self.reached)),
            quarters=parts(self.expected, self.reached),
            changes=parts(self.helped[decided], (self.gains[decided] > 0).astype(float)),
        )


def correlation(one: Array, other: Array) -> float:
    """Pearson's correlation of (n,) numbers with others; 0 where either does not vary."""
    if len(one) < 2 or min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])  # (2, 2)


def parts(estimated: Array, reached: Array) -> tuple[Part, ...]:
    """Divide sentences into `PARTS` of about one size, the lowest estimates first; less where they are few."""
    order = np.argsort(estimated, kind="stable")  # (n,)
    divided = np.array_split(order, PARTS)
    return tuple(
        Part(len(own), estimated=float(estimated[own].mean()), reached=float(reached[own].mean()))
        for own in divided
        if len(own)
    )


@dataclass(frozen=True)
class Measured:
    """What is expected of sentences.

    Attributes:
        metric: name of what is expected.
        estimates: by the ids of the sentences.
        outcome: and what came out, None without references.
    """

    metric: str
    estimates: Mapping[int, Estimate]
    outcome: Outcome | None = None


class Measuring:
    """Estimates the choices of one sentence after the other; references have gone through the filters already.

    Attributes:
        metric: name of what is expected.
    """

    def __init__(self, confidence: Confidence, references: Sequence[Sequence[str]], filters: Filters) -> None:
        self._confidence, self._references, self._filters = confidence, references, filters
        self._metric = Metric(confidence.metric)
        self.metric = self._metric.formula.name
        self._estimates: dict[int, Estimate] = {}
        self._rows: list[tuple[float, ...]] = []

    def add(self, ranking: Ranking) -> Estimate:
        """Add a sentence, and return the estimate of its choice; errors are those of `Confidence.predictors`."""
        confidence = self._confidence
        values = confidence.predictors(ranking)
        estimate = self._estimates[ranking.candidates.sentence] = confidence.estimate_by(values)
        if self._references:
            statistics = choice_and_before(ranking, self._metric, self._references, self._filters)  # (2, size)
            reached, before = (100 * np.round(self._metric.formula.smoothed(statistics), DECIMALS)).tolist()  # (2,)
            helped = np.nan if estimate.helped is None else estimate.helped
            row = (estimate.expected, helped, values.choice[confidence.alone], reached, reached - before)
            self._rows.append(row)
        return estimate

    def measured(self) -> Measured:
        """Return what is expected of the sentences that were added."""
        outcome = Outcome(*np.array(self._rows).T) if self._rows else None
        return Measured(self.metric, self._estimates, outcome)


def choice_and_before(ranking: Ranking, metric: Metric, references: Sequence[Sequence[str]], filters: Filters) -> Array:
    """(2, size) statistics of the choice, and of the decoder's; references have gone through the filters already."""
    count = metric.counter([lines[ranking.candidates.sentence] for lines in references])
    texts = (ranking.best.text, ranking.candidates.moses_text)
    return np.array([count(filters(text)) for text in texts])  # (2, size)


@dataclass(frozen=True)
class _Choices:
    """The choices on n sentences of dev.

    Attributes:
        names: of the predictors of the choice, and of those of the change.
        choice: (n, P) predictors of the choice.
        change: (n, Q) those of the change, 0 where nothing changed.
        changed: (n,) whether the choice differs from that of Moses.
        reached: (n,) scores of the choices, 0 … 100.
        gains: (n,) the same minus those of Moses' choices.
        differs: whether Moses' choice is in some sentence not the candidate with the highest total.
    """

    names: tuple[tuple[str, ...], tuple[str, ...]]
    choice: Array
    change: Array
    changed: Array
    reached: Array
    gains: Array
    differs: bool

    def fit(self, sentences: Integers) -> tuple[Regression, Regression]:
        """Fit the expected score, and whether changes helped, on some of the sentences."""
        decided = sentences[self.changed[sentences] & (self.gains[sentences] != 0)]  # (decided,)
        quality = fit_score(self.names[0], self.choice[sentences], self.reached[sentences])
        return quality, fit_logistic(self.names[1], self.change[decided], (self.gains[decided] > 0).astype(float))


def fit_confidence(
    lists: Lists, start: str, tuned: str, tuning: Tuning, expected: str, folds: int, output: str, moses_output: str = ""
) -> None:
    """Fit confidence in a metric, the `expected` one, on folds of dev, `FOLDS` where `folds` is 0; write it as JSON.

    Sentences of a fold are chosen for by weights tuned, in one run, on the other folds; where the start weights were
    kept, these choose.

    Args:
        lists: scored lists and references of dev.
        start: path of the weights that tuning started from.
        tuned: path of those that it found.
        tuning: how.
        expected: name of the metric.
        folds: number of folds.
        output: path of the file to write.
        moses_output: path of the decoder's own output, empty if that is the candidates with the highest totals.
    """
    problem, initial = read_problem(lists, start, tuning)
    metric, weights = Metric(expected), read_weights(tuned)
    sentences = len(problem.candidates.sentences)
    folds = min(folds or FOLDS, sentences)
    dense = problem.candidates.space.dense
    units = FeatureUnits(dense, problem.spread(), tuple(name for name, _ in dense if name not in initial))
    final = problem.candidates.scores(problem.candidates.space.vector(weights))  # (N,)
    spread = problem.candidates.spread_of(final) or 1.0
    totals = final / spread if kept_start(tuned) else _out_of_fold(problem, tuning, folds)  # (N,)
    choices = _choices(problem.candidates, lists, moses_output, metric, totals, units)
    quality, helped = choices.fit(np.arange(sentences))
    outcome, alone = _cross_fitted(choices, partition(sentences, folds))
    confidence = Confidence(
        metric=expected,
        weights=fingerprint(weights),
        units=units,
        spread=spread,
        quality=quality,
        helped=helped,
        alone=alone,
        dev=outcome.fit(),
        moses_output=choices.differs,
    )
    log.info(f"expected {metric.formula.name} of dev's sentences, out of fold: r {confidence.dev.correlation:.3f}")
    write_confidence(output, confidence)


def _out_of_fold(problem: Problem, tuning: Tuning, folds: int) -> Array:
    """(N,) scores by weights tuned on the other folds, in units of their spread."""
    totals = np.zeros(len(problem.statistics))
    with progress_bar("confidence", folds) as bar:
        for held, weights in fold_weights(problem, tuning.once, folds):
            scores = problem.candidates.scores(weights)  # (N,)
            rows = problem.candidates.rows_of(held)
            totals[rows] = scores[rows] / (problem.candidates.spread_of(scores) or 1.0)  # (rows,)
            bar.advance(1, "")
    return totals


def _choices(
    candidates: Candidates, dev: Lists, moses_output: str, metric: Metric, totals: Array, units: FeatureUnits
) -> _Choices:
    """Read the lists again, for their texts, and see what totals (N,) choose, and what that reaches."""
    filters, lists = dev.filters, pool(dev.nbest)
    references = filters.references(dev.references)
    if moses_output:
        lists = read_moses_output(moses_output, marks=filters.marks).add_to(lists)
    places = {sentence: place for place, sentence in enumerate(candidates.sentences.tolist())}
    values: list[Predictors] = [Predictors({}, {})] * len(places)
    both = np.zeros((len(places), 2, metric.formula.size))
    differs = False
    with progress_bar("see choices", len(places)) as bar:
        for sentence_list in lists:
            place = places[sentence_list.sentence]
            start, end = candidates.offsets[place : place + 2]
            ranking = Ranking(sentence_list, totals[start:end])
            values[place] = predictors(sentence_list, ranking.scores, units)
            differs |= sentence_list.moses_choice != sentence_list.highest_total
            both[place] = choice_and_before(ranking, metric, references, filters)
            bar.advance(1, "")
    of_choice = tuple(values[0].choice)
    of_change = tuple(next((each.change for each in values if each.change), {}))
    change = np.array([[each.change.get(name, 0) for name in of_change] for each in values])  # (n, Q)
    reached, before = 100 * np.round(metric.formula.smoothed(both), DECIMALS).T  # (n, 2) -> (n,), (n,)
    return _Choices(
        names=(of_choice, of_change),
        choice=np.array([list(each.choice.values()) for each in values]),  # (n, P)
        change=change,
        changed=np.array([bool(each.change) for each in values]),
        reached=reached,
        gains=reached - before,
        differs=differs,
    )


def _cross_fitted(choices: _Choices, folds: list[Integers]) -> tuple[Outcome, str]:
    """Estimate each fold by what was fitted on the others; return the best single predictor of all dev, too."""
    sentences = len(choices.reached)
    expected, helped = np.zeros(sentences), np.full(sentences, np.nan)
    for held in folds:
        quality, change = choices.fit(np.setdiff1d(np.arange(sentences), held))
        expected[held] = np.clip(quality.values(choices.choice[held]), 0, 100)
        changed = held[choices.changed[held]]
        helped[changed] = probabilities(change.values(choices.change[changed]))  # (changed,)
    says = [abs(correlation(column, choices.reached)) for column in choices.choice.T]  # (P,)
    best = int(np.argmax(says))
    alone = choices.choice[:, best]  # (n,)
    outcome = Outcome(expected, helped, alone, reached=choices.reached, gains=choices.gains)
    return outcome, choices.names[0][best]
