"""A fitted confidence model: it turns a ranking into an estimate, and is stored as JSON."""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from features.arrays import Array
from features.progress import log
from moses_io.files.errors import InputError, at, counted, shown
from moses_io.files.json_files import read_json, record_of, write_json
from moses_io.nbest import SentenceList
from moses_io.weights import Weights, names_of_values
from rerank.confidence.predictors import FeatureUnits, Predictors, predictors
from rerank.confidence.regression import SIGNATURE, BoostedSteps, Regression, probabilities
from rerank.linear.ranking import Estimate, Ranking
from rerank.linear.weights import fingerprint
from rerank.metrics.metric import Metric

FORMAT = 5
"""Version of the file format. Formats 3 and 4 had other names, see `_present_names` and `_with_names_of_values`."""

CONFIDENCE = "confidence.json"
MAX_BYTES = 2**28
"""Maximum size of a file that is read. With many features the file is large."""

_Above0 = Annotated[float, Meta(gt=0)]
_From0 = Annotated[float, Meta(ge=0)]
_Count = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class Part:
    """A group of sentences or changes, with the mean estimate and the mean outcome.

    Attributes:
        count: number of sentences or changes.
        expected: mean of the estimates.
        actual: mean of the actual values.
    """

    count: int
    expected: float
    actual: float


@dataclass(frozen=True)
class Fit:
    """Quality of the estimates on a set of sentences.

    Attributes:
        correlation: Pearson's correlation of expected and actual scores.
        best_predictor: absolute correlation of the single predictor `Confidence.best_predictor` with the actual scores.
        quarters: the sentences in quarters, lowest expected score first. Scores are 0 … 100.
        changes: the changes that made a sentence better or worse, in quarters, lowest probability first. `expected` is
            the mean probability that the change helped, `actual` the fraction that helped.
    """

    correlation: float
    best_predictor: float
    quarters: tuple[Part, ...]
    changes: tuple[Part, ...]


@dataclass(frozen=True)
class Confidence:
    """A confidence model, fitted on dev.

    Attributes:
        metric: key of the metric that is predicted.
        weights: fingerprint of the weights whose choices are estimated.
        units: units of the features.
        spread: standard deviation of the model scores under these weights, within sentences of dev.
        quality: predicts the score of a sentence, 0 … 100, from the predictors of the choice.
        helped: predicts the log odds that the change made the sentence better rather than worse, from the predictors of
            the change.
        best_predictor: name of the predictor that correlates best with the score on dev.
        dev: fit on dev, cross-validated.
        moses_output: whether Moses' output of dev was given and differs, for some sentence, from the candidate with the
            highest total, as with MBR decoding.
    """

    metric: str
    weights: str
    units: FeatureUnits
    spread: float
    quality: Regression
    helped: Regression
    best_predictor: str
    dev: Fit
    moses_output: bool = False

    def check(self, sentence_list: SentenceList) -> None:
        """Compare the features of a list with the features that confidence was fitted with.

        Raises:
            InputError: a feature is missing, is new, or has another number of values.
        """
        expected = dict(self.units.dense)
        listed = {name: len(values) for name, values in sentence_list.hypotheses[0].dense}
        for name in [*listed, *expected]:
            if listed.get(name) != expected.get(name):
                has = counted(listed[name], "value") if name in listed else "none"
                expected_count = counted(expected[name], "value") if name in expected else "none"
                fitted = f"confidence was fitted with {expected_count}"
                raise InputError(f"{sentence_list.place}: feature {shown(name)} has {has}, {fitted}")

    def predictors(self, ranking: Ranking) -> Predictors:
        """Return the predictors of a sentence. Raises `InputError` if the features differ from dev's."""
        self.check(ranking.candidates)
        return predictors(ranking.candidates, ranking.scores / self.spread, self.units)

    def estimate(self, ranking: Ranking) -> Estimate:
        """Return the estimate for the choice of a sentence. Raises `InputError` if the features differ from dev's."""
        return self.estimate_by(self.predictors(ranking))

    def estimate_by(self, values: Predictors) -> Estimate:
        """Return the estimate for a sentence with these predictors."""
        expected = float(np.clip(self.quality.values(_row(self.quality, values.choice))[0], 0, 100))
        if not values.change:
            return Estimate(expected, None)
        log_odds = self.helped.values(_row(self.helped, values.change))  # (1,)
        return Estimate(expected, float(probabilities(log_odds)[0]))


def _row(regression: Regression, values: dict[str, float]) -> Array:
    """(1, P) predictors in the order of a regression.

    Raises:
        InputError: the regression uses a predictor that this version does not have.
    """
    if unknown := [name for name in regression.names if name not in values]:
        raise InputError(f"confidence was fitted with {shown(unknown[0])}, which is no predictor of this version")
    return np.array([[values[name] for name in regression.names]])


def write_confidence(path: str, confidence: Confidence) -> None:
    """Write a confidence model as JSON."""
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
        "best_predictor": confidence.best_predictor,
        "dev": asdict(confidence.dev),
        "moses_output": confidence.moses_output,
    }
    write_json(path, values, indent=1)


def _written(regression: Regression) -> dict[str, Any]:
    """Return a regression as JSON values: predictors with the largest effect first, steps as `[threshold, rise]`."""
    steps, weights = regression.steps, np.abs(regression.coefficients)  # (P,)
    np.add.at(weights, steps.predictors, np.abs(steps.rises))  # a predictor may have several steps
    rows = np.column_stack([steps.thresholds, steps.rises])  # (K, 2)
    predictors: dict[str, dict[str, Any]] = {}
    for index in np.argsort(-weights, kind="stable").tolist():
        entry = predictors[regression.names[index]] = {
            "mean": float(regression.means[index]),
            "deviation": float(regression.deviations[index]),
            "coefficient": float(regression.coefficients[index]),
        }
        if index in steps.predictors:
            entry["steps"] = rows[steps.predictors == index].tolist()
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
        steps = [(index, *step) for index, row in enumerate(rows) for step in row.steps]
        return Regression(
            names=tuple(self.predictors),
            means=np.array([row.mean for row in rows]),
            deviations=np.array([row.deviation for row in rows]),
            coefficients=np.array([row.coefficient for row in rows]),
            intercept=self.intercept,
            steps=BoostedSteps(
                predictors=np.array([index for index, _, _ in steps], dtype=np.int64),
                thresholds=np.array([threshold for _, threshold, _ in steps]),
                rises=np.array([rise for _, _, rise in steps]),
            ),
        )


@dataclass(frozen=True)
class _File:
    """Content of the file, see `write_confidence`. Other keys, such as `kept` of earlier versions, are ignored."""

    metric: str
    weights: str
    features: dict[str, _Count]
    added: tuple[str, ...]
    deviations: tuple[_From0, ...]
    spread: _Above0
    quality: _Regression
    helped: _Regression
    best_predictor: str
    dev: Fit
    moses_output: bool = False

    def __post_init__(self) -> None:
        if not set(self.added) <= set(self.features):
            raise ValueError("`added` names features that are not in `features`")
        size = sum(self.features.values())
        if len(self.deviations) != size:
            raise ValueError(f"{len(self.deviations)} deviations of {size} values")
        if self.best_predictor not in self.quality.predictors:
            raise ValueError(f"{shown(self.best_predictor)} is no predictor of the expected score")


def read_confidence(path: str) -> Confidence:
    """Read a file that `write_confidence` wrote.

    Raises:
        InputError: the file is of another kind, has another format, or is damaged.
    """
    values = read_json(Path(path), MAX_BYTES)
    if not isinstance(values, dict) or "format" not in values:
        raise InputError(f"{path}: not a confidence file as written by `moses-rerank run`")
    if values["format"] not in (3, 4, FORMAT):
        written = f"format {shown(values['format'])}, this version reads formats 3, 4 and {FORMAT}"
        raise InputError(f"{path}: {written}. Make it again with `moses-rerank run`")
    file = record_of(_present_names(values) if values["format"] == 3 else values, _File, path)
    if values["format"] != FORMAT:
        file = _with_names_of_values(file)
    with at(f"{path}: "):
        Metric(file.metric)
    return Confidence(
        metric=file.metric,
        weights=file.weights,
        units=FeatureUnits(tuple(file.features.items()), np.array(file.deviations), file.added),
        spread=file.spread,
        quality=file.quality.regression(),
        helped=file.helped.regression(),
        best_predictor=file.best_predictor,
        dev=file.dev,
        moses_output=file.moses_output,
    )


_RENAMED = {
    "alone": "best_predictor",
    "estimated": "expected",
    "reached": "actual",
    "lead": "margin",
    "likeness of favourites": "similarity of top candidates",
    "place by Moses": "rank by Moses",
    "letters per word": "characters per word",
    "share of different words": "type-token ratio",
    "texts": "distinct texts",
    "shortness": "inverse length",
}
"""Keys and predictors of format 3 with their present names."""


def _present_names(values: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file of format 3 with the names of the present format."""
    present = {_present(key): _with_present_keys(value) for key, value in values.items() if key != "features"}
    if isinstance(present.get("best_predictor"), str):
        present["best_predictor"] = _present(present["best_predictor"])
    return present | {"features": values.get("features")}


def _with_present_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_present(key): _with_present_keys(item) for key, item in value.items()}
    return [_with_present_keys(item) for item in value] if isinstance(value, list) else value


def _present(name: str) -> str:
    return _RENAMED.get(name, re.sub("^likeness to the list", "consensus", name))


_VALUE = re.compile("(consensus, |highest |)(.+?)( of the choice| per word| is the best| over Moses' choice|)")
"""Name of a predictor with the name of a value of a feature."""


def _with_names_of_values(file: _File) -> _File:
    """Return the content of a file of format 3 or 4, in which values were named TM:1, TM:2, …, with present names."""
    present = {
        f"{feature}:{number}": name
        for feature, count in file.features.items()
        if count > 1
        for number, name in enumerate(names_of_values(feature, count), start=1)
    }

    def renamed(predictor: str) -> str:
        match = _VALUE.fullmatch(predictor)
        return f"{match[1]}{present.get(match[2], match[2])}{match[3]}" if match else predictor

    quality, helped = (
        replace(each, predictors={renamed(name): row for name, row in each.predictors.items()})
        for each in (file.quality, file.helped)
    )
    return replace(file, quality=quality, helped=helped, best_predictor=renamed(file.best_predictor))


def read_estimator(path: str, weights: Weights, name: str, moses_output: bool) -> Confidence:
    """Read confidence that was fitted for the choices of given weights.

    Warn if it was fitted with Moses' output and none is given for this list.

    Args:
        path: file of the confidence model.
        weights: the weights.
        name: path of their file, for messages.
        moses_output: whether Moses' output of the list is given.

    Raises:
        InputError: the file cannot be read, or was fitted for other weights.
    """
    confidence = read_confidence(path)
    if confidence.weights != fingerprint(weights):
        raise InputError(f"{path}: fitted for other weights than the ones in {name}")
    if confidence.moses_output and not moses_output:
        instead = "The candidate with the highest total score is used as Moses' choice"
        log.warning(f"{path}: fitted with Moses' output, which is not given for this list (--moses-output). {instead}")
    return confidence
