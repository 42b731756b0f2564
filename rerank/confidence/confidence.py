"""Confidence as it was fitted: from the candidates of a sentence and their scores to an estimate."""

from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from moses_io.errors import InputError, counted, shown
from moses_io.nbest import SentenceList
from rerank.confidence.fit import Fit
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import Regression, probabilities
from rerank.linear.selection import Estimate, Ranking


@dataclass(frozen=True)
class Kept:
    """The metric on dev out of fold, 0 … 100: of all choices, and with Moses' where the change more likely harms."""

    all: float
    kept: float


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
        kept: what it is worth there to keep Moses' choice.
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
    kept: Kept
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

    def estimate(self, values: Predictors) -> Estimate:
        """Return the estimate of a sentence."""
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
