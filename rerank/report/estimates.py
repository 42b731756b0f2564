"""How well estimates of sentences fit, as a table: a row a set of sentences."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rerank.confidence.confidence import Confidence, Fit, Part
from rerank.metrics.metric import Metric

DEV = "dev, out of fold"


def lines(confidence: Confidence, tests: Mapping[str, Fit]) -> list[str]:
    """Return the lines of the table: dev, then test sets by their names."""
    name, fits = Metric(confidence.metric).formula.name, {DEV: confidence.dev, **tests}
    width = max(map(len, fits))
    rows = {of: f"{fit.correlation:5.3f}  {fit.alone:5.3f}  {_means(fit.quarters, 1)}" for of, fit in fits.items()}
    changes = {of: _means(fit.changes, 100) for of, fit in fits.items() if fit.changes}
    return [
        f"Confidence: expected {name} of a sentence > what it reached, means of quarters, least sure first",
        f"{'':<{width}}  {'r':>5}  alone",
        *(f"{of:<{width}}  {row}" for of, row in rows.items()),
        f"r: with what was reached; alone: of the single predictor {confidence.alone!r}",
        "Changes that made a difference: probability that they helped > share that did, quarters",
        *(f"{of:<{width}}  {row}" for of, row in changes.items()),
    ]


def as_json(confidence: Confidence, tests: Mapping[str, Fit]) -> dict[str, Any]:
    """Return it as plain values."""
    fits = {"dev": confidence.dev, **tests}
    return {
        "metric": confidence.metric,
        "alone": confidence.alone,
        "sets": {of: asdict(fit) for of, fit in fits.items()},
    }


def _means(parts: tuple[Part, ...], times: int) -> str:
    return "  ".join(f"{times * part.estimated:5.1f} > {times * part.reached:5.1f}" for part in parts)
