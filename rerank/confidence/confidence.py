"""Confidence as it was fitted: from the candidates of a sentence and their scores to an estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from moses_io.errors import InputError, counted, shown
from moses_io.nbest import SentenceList
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import Regression, probabilities
from rerank.linear.selection import Estimate, Ranking
from rerank.metrics.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric

PARTS = 4
"""Into which sentences, and changes, are divided by what was estimated of them."""


@dataclass(frozen=True)
class Part:
    """Some sentences or changes: how many, and the means of what was estimated and of what came out."""

    count: int
    estimated: float
    reached: float


@dataclass(frozen=True)
class Fit:
    """How well the estimates of a set of sentences fit.

    Attributes:
        correlation: Pearson's, of expected scores with those that were reached.
        alone: the same of the best single predictor on dev, whatever its sign.
        quarters: of the sentences, the least sure first; scores 0 … 100.
        changes: the same of those that made a sentence better or worse; probabilities, and the share that helped.
    """

    correlation: float
    alone: float
    quarters: tuple[Part, ...]
    changes: tuple[Part, ...]


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
class Confidence:
    """What was fitted on dev.

    Attributes:
        metric: name of the one that is expected.
        weights: fingerprint of those whose choices are estimated.
        units: of the features.
        spread: standard deviation, within sentences of dev, of the scores by these weights.
        quality: the expected score of a sentence, 0 … 100, by the predictors of the choice.
        helped: log odds that the change made it better and not worse, by those of the change.
        alone: the single predictor that says most of the score on dev.
        dev: how well it fits there, out of fold.
        moses_output: whether Moses' choices on dev were its output and in some sentence another candidate than the one
            with the highest total, as with MBR decoding.
    """

    metric: str
    weights: str
    units: FeatureUnits
    spread: float
    quality: Regression
    helped: Regression
    alone: str
    dev: Fit
    moses_output: bool = False

    def check(self, candidates: SentenceList) -> None:
        """Refuse a list with other features.

        Raises:
            InputError: it has one more or less, or another number of values.
        """
        expected = dict(self.units.dense)
        listed = {name: len(values) for name, values in candidates.hypotheses[0].dense}
        for name in [*listed, *expected]:
            if listed.get(name) != expected.get(name):
                has = counted(listed[name], "value") if name in listed else "none"
                wanted = counted(expected[name], "value") if name in expected else "none"
                fitted = f"confidence was fitted with {wanted}"
                raise InputError(f"{candidates.place}: feature {shown(name)} has {has}, {fitted}")

    def predictors(self, ranking: Ranking) -> Predictors:
        """Return what the estimate is made of; errors are those of `check`."""
        self.check(ranking.candidates)
        return predictors(ranking.candidates, ranking.scores / self.spread, self.units)

    def estimate(self, ranking: Ranking) -> Estimate:
        """Return the estimate of a sentence; errors are those of `check`."""
        return self.estimate_by(self.predictors(ranking))

    def estimate_by(self, values: Predictors) -> Estimate:
        """Return the estimate of a sentence with these predictors."""
        expected = float(np.clip(self.quality.values(_row(self.quality, values.choice))[0], 0, 100))
        if not values.change:
            return Estimate(expected, None)
        log_odds = self.helped.values(_row(self.helped, values.change))  # (1,)
        return Estimate(expected, float(probabilities(log_odds)[0]))


def _row(regression: Regression, values: dict[str, float]) -> Array:
    """(1, P) predictors in the order of a regression.

    Raises:
        InputError: one of them is none of ours.
    """
    if unknown := [name for name in regression.names if name not in values]:
        raise InputError(f"confidence was fitted with {shown(unknown[0])}, which is no predictor of this version")
    return np.array([[values[name] for name in regression.names]])


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
    candidates = ranking.candidates
    count = metric.counter([lines[candidates.sentence] for lines in references])
    texts = [ranking.best.text, candidates.moses_text]
    return np.array([count(filters(text)) for text in texts])  # (2, size)
