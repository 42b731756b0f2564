"""Fit confidence on dev, and measure how well its estimates fit.

The choices come from weights that were tuned on other sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.progress import log, progress_bar
from moses_io.filters import Filters
from moses_io.nbest import pool, read_moses_output
from moses_io.weights import read_weights
from rerank.confidence.confidence import Confidence, Fit, Part, write_confidence
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import Regression, fit_logistic, fit_score, probabilities
from rerank.linear.candidates import Candidates
from rerank.linear.ranking import Estimate, Ranking
from rerank.linear.weights import fingerprint, kept_initial_weights
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.folds import fold_weights, partition, usable_folds
from rerank.tuning.tuning_set import Lists, read_problem

NUM_GROUPS = 4
"""Number of groups into which sentences and changes are divided by their estimates."""


class Outcome(NamedTuple):
    """Estimates and actual scores of n sentences.

    Attributes:
        expected: (n,) expected scores, 0 … 100.
        helped: (n,) probabilities that the change helped, nan for sentences without a change.
        best_predictor: (n,) values of the best single predictor.
        actual: (n,) actual scores, 0 … 100.
        gains: (n,) actual scores minus the scores of Moses' choices.
    """

    expected: Array
    helped: Array
    best_predictor: Array
    actual: Array
    gains: Array

    def fit(self) -> Fit:
        """Return how well the estimates fit the actual scores."""
        decided = ~np.isnan(self.helped) & (self.gains != 0)  # (n,)
        return Fit(
            correlation=correlation(self.expected, self.actual),
            best_predictor=abs(correlation(self.best_predictor, self.actual)),
            quarters=groups(self.expected, self.actual),
            changes=groups(self.helped[decided], (self.gains[decided] > 0).astype(float)),
        )


def correlation(one: Array, other: Array) -> float:
    """Return Pearson's correlation of two arrays (n,), 0 if either is constant or n is below 2."""
    if len(one) < 2 or min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])  # (2, 2)


def groups(expected: Array, actual: Array) -> tuple[Part, ...]:
    """Divide sentences into groups of about equal size, lowest estimates first.

    There are `NUM_GROUPS` groups, or one per sentence if there are fewer sentences.

    Args:
        expected: (n,) estimates.
        actual: (n,) actual values.
    """
    order = np.argsort(expected, kind="stable")  # (n,)
    return tuple(
        Part(len(group), expected=float(expected[group].mean()), actual=float(actual[group].mean()))
        for group in np.array_split(order, NUM_GROUPS)
        if len(group)
    )


@dataclass(frozen=True)
class MeasuredEstimates:
    """Estimates of a set of sentences.

    Attributes:
        metric: display name of the predicted metric.
        estimates: estimate of each sentence, by its id.
        outcome: estimates with the actual scores, None without references.
    """

    metric: str
    estimates: Mapping[int, Estimate]
    outcome: Outcome | None = None


class EstimateCollector:
    """Estimates for a set of sentences, added one after the other. The references are already filtered.

    Attributes:
        metric: display name of the predicted metric.
    """

    def __init__(self, confidence: Confidence, references: Sequence[Sequence[str]], filters: Filters) -> None:
        self._confidence, self._references, self._filters = confidence, references, filters
        self._metric = Metric(confidence.metric)
        self.metric = self._metric.formula.name
        self._estimates: dict[int, Estimate] = {}
        self._rows: list[tuple[float, ...]] = []

    def add(self, ranking: Ranking) -> Estimate:
        """Add a sentence and return the estimate for its choice.

        Raises `InputError` if the features differ from dev's.
        """
        confidence = self._confidence
        values = confidence.predictors(ranking)
        estimate = self._estimates[ranking.candidates.sentence] = confidence.estimate_by(values)
        if self._references:
            statistics = choice_and_before(ranking, self._metric, self._references, self._filters)  # (2, size)
            actual, before = actual_scores(self._metric, statistics).tolist()  # (2,)
            helped = np.nan if estimate.helped is None else estimate.helped
            row = (estimate.expected, helped, values.choice[confidence.best_predictor], actual, actual - before)
            self._rows.append(row)
        return estimate

    def measured(self) -> MeasuredEstimates:
        """Return the estimates of all sentences added so far."""
        outcome = Outcome(*np.array(self._rows).T) if self._rows else None
        return MeasuredEstimates(self.metric, self._estimates, outcome)


def choice_and_before(ranking: Ranking, metric: Metric, references: Sequence[Sequence[str]], filters: Filters) -> Array:
    """(2, size) statistics of the choice and of Moses' choice. The references are already filtered."""
    count = metric.counter([lines[ranking.candidates.sentence] for lines in references])
    texts = (ranking.best.text, ranking.candidates.moses_text)
    return np.array([count(filters(text)) for text in texts])  # (2, size)


def actual_scores(metric: Metric, statistics: Array) -> Array:
    """(…) sentence scores, 0 … 100, of statistics (…, formula.size). A negative 1-TER counts as 0."""
    return 100 * np.clip(np.round(metric.formula.smoothed(statistics), DECIMALS), 0, 1)  # (…)


@dataclass(frozen=True)
class _Choices:
    """The choices on n sentences of dev.

    Attributes:
        names: names of the P predictors of the choice and of the Q predictors of the change.
        choice: (n, P) predictors of the choice.
        change: (n, Q) predictors of the change, 0 for sentences without a change.
        changed: (n,) whether the choice differs from Moses' choice, and Moses' choice is among the candidates.
        actual: (n,) scores of the choices, 0 … 100.
        gains: (n,) scores of the choices minus the scores of Moses' choices.
        differs: whether, in some sentence, Moses' choice is not the candidate with the highest total.
    """

    names: tuple[tuple[str, ...], tuple[str, ...]]
    choice: Array
    change: Array
    changed: Array
    actual: Array
    gains: Array
    differs: bool

    def fit(self, sentences: Integers) -> tuple[Regression, Regression]:
        """Fit, on some sentences, the expected score and the log odds that a change helped."""
        decided = sentences[self.changed[sentences] & (self.gains[sentences] != 0)]  # (decided,)
        quality = fit_score(self.names[0], self.choice[sentences], self.actual[sentences])
        return quality, fit_logistic(self.names[1], self.change[decided], (self.gains[decided] > 0).astype(float))


def fit_confidence(
    lists: Lists,
    initial_weights: str,
    tuned: str,
    tuning: Tuning,
    expected: str,
    folds: int,
    output: str,
    moses_output: str = "",
) -> None:
    """Fit the confidence model on dev, cross-validate it, and write it as JSON.

    The candidates of each fold are chosen by weights that were tuned on the other folds, in a single run. If tuning
    kept the initial weights, these weights choose the candidates.

    Args:
        lists: scored lists and references of dev.
        initial_weights: file of the initial weights.
        tuned: file of the tuned weights.
        tuning: settings of tuning.
        expected: key of the metric to predict.
        folds: number of folds. 0 stands for `FOLDS`. At most one fold per sentence.
        output: file to write.
        moses_output: file of Moses' own output, empty if Moses chose the candidates with the highest totals.
    """
    problem, initial = read_problem(lists, initial_weights, tuning)
    metric, weights = Metric(expected), read_weights(tuned)
    sentences = len(problem.candidates.sentences)
    folds = usable_folds(folds, sentences)
    dense = problem.candidates.space.dense
    units = FeatureUnits(dense, problem.spread(), tuple(name for name, _ in dense if name not in initial))
    final = problem.candidates.scores(problem.candidates.space.vector(weights))  # (N,)
    spread = problem.candidates.spread_of(final) or 1.0
    totals = final / spread if kept_initial_weights(tuned) else _cross_validated_scores(problem, tuning, folds)  # (N,)
    choices = _choices(problem.candidates, lists, moses_output, metric, totals, units)
    quality, helped = choices.fit(np.arange(sentences))
    outcome, best_predictor = _cross_fitted(choices, partition(sentences, folds))
    confidence = Confidence(
        metric=expected,
        weights=fingerprint(weights),
        units=units,
        spread=spread,
        quality=quality,
        helped=helped,
        best_predictor=best_predictor,
        dev=outcome.fit(),
        moses_output=choices.differs,
    )
    log.info(f"expected {metric.formula.name} of dev's sentences, cross-validated: r {confidence.dev.correlation:.3f}")
    write_confidence(output, confidence)


def _cross_validated_scores(problem: Problem, tuning: Tuning, folds: int) -> Array:
    """(N,) scores of the candidates by weights tuned on the other folds, in units of their spread."""
    totals = np.zeros(len(problem.statistics))
    with progress_bar("confidence", folds, whole=True) as bar:
        for held_out, weights in fold_weights(problem, tuning.once, folds):
            scores = problem.candidates.scores(weights)  # (N,)
            rows = problem.candidates.rows_of(held_out)
            totals[rows] = scores[rows] / (problem.candidates.spread_of(scores) or 1.0)  # (rows,)
            bar.advance(1, "")
    return totals


def _choices(
    candidates: Candidates, dev: Lists, moses_output: str, metric: Metric, totals: Array, units: FeatureUnits
) -> _Choices:
    """Read the lists again for their texts. Return the choices by totals (N,), with predictors and scores."""
    filters, lists = dev.filters, pool(dev.nbest)
    references = filters.references(dev.references)
    if moses_output:
        lists = read_moses_output(moses_output, marks=filters.marks).add_to(lists)
    indices = {sentence: index for index, sentence in enumerate(candidates.sentences.tolist())}
    values: list[Predictors] = [Predictors({}, {})] * len(indices)
    both = np.zeros((len(indices), 2, metric.formula.size))
    differs = False
    with progress_bar("read choices", len(indices)) as bar:
        for sentence_list in lists:
            index = indices[sentence_list.sentence]
            start, end = candidates.offsets[index : index + 2]
            ranking = Ranking(sentence_list, totals[start:end])
            values[index] = predictors(sentence_list, ranking.scores, units)
            differs |= sentence_list.moses_choice != sentence_list.highest_total
            both[index] = choice_and_before(ranking, metric, references, filters)
            bar.advance(1, "")
    of_choice = tuple(values[0].choice)
    of_change = tuple(next((each.change for each in values if each.change), {}))
    change = np.array([[each.change.get(name, 0) for name in of_change] for each in values])  # (n, Q)
    actual, before = actual_scores(metric, both).T  # (n,), (n,)
    return _Choices(
        names=(of_choice, of_change),
        choice=np.array([list(each.choice.values()) for each in values]),  # (n, P)
        change=change,
        changed=np.array([bool(each.change) for each in values]),
        actual=actual,
        gains=actual - before,
        differs=differs,
    )


def _cross_fitted(choices: _Choices, folds: list[Integers]) -> tuple[Outcome, str]:
    """Estimate each fold with a fit on the other folds.

    Return the outcome, and the name of the best single predictor. That predictor is chosen on all of dev.
    """
    sentences = len(choices.actual)
    expected, helped = np.zeros(sentences), np.full(sentences, np.nan)
    for held_out in folds:
        quality, change = choices.fit(np.setdiff1d(np.arange(sentences), held_out))
        expected[held_out] = np.clip(quality.values(choices.choice[held_out]), 0, 100)
        changed = held_out[choices.changed[held_out]]
        helped[changed] = probabilities(change.values(choices.change[changed]))  # (changed,)
    correlations = [abs(correlation(column, choices.actual)) for column in choices.choice.T]  # (P,)
    best = int(np.argmax(correlations))
    predictor = choices.choice[:, best]  # (n,)
    outcome = Outcome(expected, helped, predictor, actual=choices.actual, gains=choices.gains)
    return outcome, choices.names[0][best]
