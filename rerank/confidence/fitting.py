"""Confidence is fitted on dev, on choices by weights that were tuned on other sentences."""

from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from features.progress import log, progress_bar
from moses_io.nbest import pool, read_moses_output
from moses_io.weights import read_weights
from rerank.confidence.confidence import Confidence, Outcome, choice_and_before, correlation
from rerank.confidence.file import write_confidence
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import Regression, fit_logistic, fit_score, probabilities
from rerank.linear.candidates import Candidates
from rerank.linear.selection import Ranking
from rerank.linear.weights import fingerprint, kept_start
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.folds import FOLDS, fold_weights, partition
from rerank.tuning.tune import read_problem
from rerank.tuning.tuning_set import Lists


@dataclass(frozen=True)
class DevFiles:
    """The scored lists and references of dev, the weights that tuning started from, and those that it found.

    `moses_output` is the decoder's own output, empty if that is the candidates with the highest totals.
    """

    lists: Lists
    start: str
    weights: str
    moses_output: str = ""


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


def fit_confidence(files: DevFiles, tuning: Tuning, expected: str, folds: int, output: str) -> None:
    """Fit confidence in a metric, the `expected` one, on folds of dev, `FOLDS` where `folds` is 0; write it as JSON.

    Sentences of a fold are chosen for by weights tuned, in one run, on the other folds; where the start weights were
    kept, these choose.
    """
    problem, start = read_problem(files.lists, files.start, tuning)
    metric, weights = Metric(expected), read_weights(files.weights)
    sentences = len(problem.candidates.sentences)
    folds = min(folds or FOLDS, sentences)
    dense = problem.candidates.space.dense
    units = FeatureUnits(dense, problem.spread(), tuple(name for name, _ in dense if name not in start))
    final = problem.candidates.scores(problem.candidates.space.vector(weights))  # (N,)
    spread = problem.candidates.spread_of(final) or 1.0
    totals = final / spread if kept_start(files.weights) else _out_of_fold(problem, tuning, folds)  # (N,)
    choices = _choices(problem.candidates, files, metric, totals, units)
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


def _choices(candidates: Candidates, files: DevFiles, metric: Metric, totals: Array, units: FeatureUnits) -> _Choices:
    """Read the lists again, for their texts, and see what totals (N,) choose, and what that reaches."""
    filters, lists = files.lists.filters, pool(files.lists.nbest)
    references = filters.references(files.lists.references)
    if files.moses_output:
        lists = read_moses_output(files.moses_output, marks=filters.marks).add_to(lists)
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
