"""Confidence as it was fitted, from a ranking to an estimate, and its file, numbers in JSON."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from features.arrays import Array
from features.progress import log
from moses_io.files.errors import InputError, at, counted, shown
from moses_io.files.json_files import read_json, record_of, write_json
from moses_io.nbest import SentenceList
from moses_io.weights import read_weights
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import SIGNATURE, BoostedSteps, Regression, probabilities
from rerank.linear.selection import Estimate, Ranking
from rerank.linear.weights import fingerprint
from rerank.metrics.metric import Metric

FORMAT = 3
CONFIDENCE = "confidence.json"
MOST_BYTES = 2**28
"""Size of the largest file that is read: with many features it is large."""

_Above0 = Annotated[float, Meta(gt=0)]
_From0 = Annotated[float, Meta(ge=0)]
_Count = Annotated[int, Meta(ge=1)]


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

    def check(self, sentence_list: SentenceList) -> None:
        """Refuse a list with other features.

        Raises:
            InputError: it has one more or less, or another number of values.
        """
        expected = dict(self.units.dense)
        listed = {name: len(values) for name, values in sentence_list.hypotheses[0].dense}
        for name in [*listed, *expected]:
            if listed.get(name) != expected.get(name):
                has = counted(listed[name], "value") if name in listed else "none"
                wanted = counted(expected[name], "value") if name in expected else "none"
                fitted = f"confidence was fitted with {wanted}"
                raise InputError(f"{sentence_list.place}: feature {shown(name)} has {has}, {fitted}")

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


def write_confidence(path: str, confidence: Confidence) -> None:
    """Write what was fitted."""
    values = {
        "format": FORMAT,
        "signature": SIGNATURE,
        "metric": confidence.metric,
        "weights": confidence.weights,
        "features": dict(confidence.units.dense),
        "added": confidence.units.added,
        "deviations": confidence.units.spread.tolist(),
        "spread": confidence.spread,
        "quality": _written(confidence.quality),
        "helped": _written(confidence.helped),
        "alone": confidence.alone,
        "dev": asdict(confidence.dev),
        "moses_output": confidence.moses_output,
    }
    write_json(path, values, indent=1)


def _written(regression: Regression) -> dict[str, Any]:
    """Name the predictors, those that count most first; each may have steps, `[threshold, rise]`."""
    steps, weights = regression.steps, np.abs(regression.coefficients)  # (P,)
    np.add.at(weights, steps.predictors, np.abs(steps.rises))
    rows = np.column_stack([steps.thresholds, steps.rises])  # (K, 2)
    predictors: dict[str, dict[str, Any]] = {}
    for place in np.argsort(-weights, kind="stable").tolist():
        own = predictors[regression.names[place]] = {
            "mean": float(regression.means[place]),
            "deviation": float(regression.deviations[place]),
            "coefficient": float(regression.coefficients[place]),
        }
        if place in steps.predictors:
            own["steps"] = rows[steps.predictors == place].tolist()
    return {"intercept": regression.intercept, "predictors": predictors}


@dataclass(frozen=True)
class _Predictor:
    mean: float
    deviation: _Above0
    coefficient: float
    steps: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class _Regression:
    intercept: float
    predictors: dict[str, _Predictor]

    def regression(self) -> Regression:
        rows = self.predictors.values()
        steps = [(place, *step) for place, row in enumerate(rows) for step in row.steps]
        return Regression(
            names=tuple(self.predictors),
            means=np.array([row.mean for row in rows]),
            deviations=np.array([row.deviation for row in rows]),
            coefficients=np.array([row.coefficient for row in rows]),
            intercept=self.intercept,
            steps=BoostedSteps(
                predictors=np.array([place for place, _, _ in steps], dtype=np.int64),
                thresholds=np.array([threshold for _, threshold, _ in steps]),
                rises=np.array([rise for _, _, rise in steps]),
            ),
        )


@dataclass(frozen=True)
class _File:
    """What the file holds, see `write_confidence`; other keys, such as `kept` of earlier versions, are ignored."""

    metric: str
    weights: str
    features: dict[str, _Count]
    added: tuple[str, ...]
    deviations: tuple[_From0, ...]
    spread: _Above0
    quality: _Regression
    helped: _Regression
    alone: str
    dev: Fit
    moses_output: bool = False

    def __post_init__(self) -> None:
        if not set(self.added) <= set(self.features):
            raise ValueError(f"{shown(list(self.added))} are no list of its features")
        size = sum(self.features.values())
        if len(self.deviations) != size:
            raise ValueError(f"{len(self.deviations)} deviations of {size} values")
        if self.alone not in self.quality.predictors:
            raise ValueError(f"{shown(self.alone)} is no predictor of the expected score")


def read_confidence(path: str) -> Confidence:
    """Read what `write_confidence` wrote.

    Raises:
        InputError: it is another file, of another format, or was damaged.
    """
    values = read_json(Path(path), MOST_BYTES)
    if not isinstance(values, dict) or "format" not in values:
        raise InputError(f"{path}: no file of confidence, such as `moses-rerank run` writes")
    if values["format"] != FORMAT:
        written = f"format {shown(values['format'])}, this version reads format {FORMAT}"
        raise InputError(f"{path}: {written}; make it anew by `moses-rerank run`")
    file = record_of(values, _File, path)
    with at(f"{path}: "):
        Metric(file.metric)
    return Confidence(
        metric=file.metric,
        weights=file.weights,
        units=FeatureUnits(tuple(file.features.items()), np.array(file.deviations), file.added),
        spread=file.spread,
        quality=file.quality.regression(),
        helped=file.helped.regression(),
        alone=file.alone,
        dev=file.dev,
        moses_output=file.moses_output,
    )


def read_estimator(path: str, weights: str, moses_output: bool) -> Confidence:
    """Read confidence that was fitted for the choices of weights, a file; warn if it needs Moses' output of the list.

    Args:
        path: of the confidence.
        weights: file.
        moses_output: whether Moses' output of the list is given.

    Raises:
        InputError: it cannot be read, or was fitted for other weights.
    """
    confidence = read_confidence(path)
    if confidence.weights != fingerprint(read_weights(weights)):
        raise InputError(f"{path}: fitted for other weights than those of {weights}")
    if confidence.moses_output and not moses_output:
        taken = "the candidate with the highest total is taken for Moses' choice"
        log.warning(
            f"{path}: fitted with Moses' output of dev, but none of this list is given (--moses-output); {taken}"
        )
    return confidence
