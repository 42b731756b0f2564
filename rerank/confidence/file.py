"""The file of confidence, numbers in JSON, and the estimates that it gives while choices are written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from features.progress import log
from moses_io.errors import InputError, shown
from moses_io.json_files import as_written, number_of, read_json, text_of, write_json
from moses_io.weights import read_weights
from rerank.confidence.confidence import Confidence, Fit, Part
from rerank.confidence.predictors import FeatureUnits
from rerank.confidence.regression import SIGNATURE, BoostedSteps, Regression
from rerank.linear.weights import fingerprint
from rerank.metrics.metric import Metric

FORMAT = 3
CONFIDENCE = "confidence.json"
MOST_BYTES = 2**28
"""Size of the largest file that is read: with many features it is large."""

_FIELDS = ("mean", "deviation", "coefficient")


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
    columns = (regression.means, regression.deviations, regression.coefficients)
    rows = zip(regression.names, *(column.tolist() for column in columns), strict=True)
    named: dict[str, dict[str, Any]] = {name: dict(zip(_FIELDS, row, strict=True)) for name, *row in rows}
    for place, *step in zip(*(column.tolist() for column in regression.steps), strict=True):
        named[regression.names[place]].setdefault("steps", []).append(step)
    by_weight = sorted(named.items(), key=lambda item: -_weight(item[1]))
    return {"intercept": regression.intercept, "predictors": dict(by_weight)}


def _weight(values: Mapping[str, Any]) -> float:
    rises: list[float] = [rise for _, rise in values.get("steps", [])]
    return sum(map(abs, rises), start=abs(float(values["coefficient"])))


def read_confidence(path: str) -> Confidence:
    """Read what `write_confidence` wrote; a key `kept`, which earlier versions wrote, is ignored.

    Raises:
        InputError: it is another file, of another format, or was damaged.
    """
    values = read_json(Path(path), MOST_BYTES)
    if not isinstance(values, dict) or "format" not in values:
        raise InputError(f"{path}: no file of confidence, such as `moses-rerank run` writes")
    if values["format"] != FORMAT:
        written = f"format {shown(values['format'])}, this version reads format {FORMAT}"
        raise InputError(f"{path}: {written}; make it anew by `moses-rerank run`")
    with as_written(path):
        dense = tuple((name, _whole(count)) for name, count in values["features"].items())
        added = tuple(map(text_of, values["added"])) if isinstance(values["added"], list) else ()
        if not set(added) <= {name for name, _ in dense} or len(added) < len(values["added"]):
            raise ValueError(f"{shown(values['added'])} are no list of its features")
        units = FeatureUnits(dense, np.array([number_of(value) for value in values["deviations"]]), added)
        if (units.spread < 0).any():
            raise ValueError("a deviation below 0")
        size = sum(count for _, count in dense)
        if len(units.spread) != size:
            raise ValueError(f"{len(units.spread)} deviations of {size} values")
        if values["alone"] not in values["quality"]["predictors"]:
            raise ValueError(f"{shown(values['alone'])} is no predictor of the expected score")
        return Confidence(
            metric=_metric(values["metric"]),
            weights=text_of(values["weights"]),
            units=units,
            spread=_above_0(values["spread"]),
            quality=_read(values["quality"]),
            helped=_read(values["helped"]),
            alone=text_of(values["alone"]),
            dev=_read_fit(values["dev"]),
            moses_output=_bool(values.get("moses_output", False)),
        )


def _read(values: Mapping[str, Any]) -> Regression:
    rows = values["predictors"].values()
    steps = [(place, *_step(step)) for place, row in enumerate(rows) for step in row.get("steps", [])]
    means, _, coefficients = (np.array([number_of(row[field]) for row in rows]) for field in _FIELDS)  # (P,)
    return Regression(
        names=tuple(values["predictors"]),
        means=means,
        deviations=np.array([_above_0(row["deviation"]) for row in rows]),
        coefficients=coefficients,
        intercept=number_of(values["intercept"]),
        steps=BoostedSteps(
            predictors=np.array([place for place, _, _ in steps], dtype=np.int64),
            thresholds=np.array([threshold for _, threshold, _ in steps]),
            rises=np.array([rise for _, _, rise in steps]),
        ),
    )


def _step(values: Sequence[Any]) -> tuple[float, float]:
    threshold, rise = map(number_of, values)
    return threshold, rise


def _read_fit(values: Mapping[str, Any]) -> Fit:
    quarters, changes = (
        tuple(
            Part(_whole(part["count"]), estimated=number_of(part["estimated"]), reached=number_of(part["reached"]))
            for part in values[name]
        )
        for name in ("quarters", "changes")
    )
    return Fit(number_of(values["correlation"]), number_of(values["alone"]), quarters=quarters, changes=changes)


def _above_0(value: Any) -> float:
    if number_of(value) <= 0:
        raise ValueError(f"expected a number above 0, found {shown(value)}")
    return float(value)


def _metric(value: Any) -> str:
    try:
        Metric(text_of(value))
    except InputError as error:
        raise ValueError(error) from None
    return str(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {shown(value)}")
    return value


def _whole(value: Any) -> int:
    if not float.is_integer(number_of(value)) or value < 1:
        raise ValueError(f"expected a whole number from 1, found {shown(value)}")
    return int(value)


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
