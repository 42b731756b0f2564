"""Plots of a study, with matplotlib."""

import logging
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from rerank.experiment.studies.file import Study
from rerank.experiment.studies.results import Replicated, Results
from rerank.plots.measurements import Curve, plot_curves, plot_sizes, read_curves

FORMS = ("png", "svg")
"""File formats. Each plot is drawn in all of them."""


def draw(study: Study, results: Results) -> list[str]:
    """Draw the plots of a study, and return their paths.

    BLEU and perplexity over sizes are drawn if there are several sizes. Learning curves are always drawn.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    several = len(study.sizes) > 1
    paths = _bleu(study, results) + _perplexity(study, results) if several else []
    return paths + [path for size in study.sizes for path in _training(study, size)]


def _bleu(study: Study, results: Results) -> list[str]:
    paths = []
    for test in study.tests:
        points = [(each.system, each.size, each.tests[test].scores["BLEU"]) for each in results.systems]
        moses = next((m for each in results.systems if (m := each.tests[test].moses["BLEU"].mean) is not None), None)
        level = None if moses is None else ("Moses", moses)
        paths += _sizes(study, points, f"BLEU, {test}", f"{test}.bleu", level)
    return paths


def _perplexity(study: Study, results: Results) -> list[str]:
    points = [(each.model, each.size, each.perplexity["dev"]) for each in results.models]
    return _sizes(study, points, "perplexity, dev", "dev.perplexity", None)


def _sizes(
    study: Study,
    points: Iterable[tuple[str, int, Replicated]],
    measure: str,
    name: str,
    level: tuple[str, float] | None,
) -> list[str]:
    """Draw a measure over corpus sizes, one curve for each name. `level` names a horizontal line and its value."""
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for series, size, replicated in sorted(points, key=lambda point: point[1]):
        curve = curves.setdefault(series, [])
        if replicated.mean is not None:
            curve.append((size, replicated.mean, replicated.deviation or 0.0))
    paths = [str(study.output / f"{name}.{form}") for form in FORMS] if curves else []
    for path in paths:
        plot_sizes(curves, measure, path, level)
    return paths


def _training(study: Study, size: int) -> list[str]:
    """Draw the learning curves of each model, averaged over seeds."""
    curves = []
    for model in study.experiment.models:
        replicates = [study.folders(size, seed, model) for seed in study.seeds]
        for name in replicates[0]:
            trained = [folders[name] for folders in replicates if Path(folders[name]).is_dir()]
            curves += [_mean(name, read_curves(trained))] if trained else []
    paths = [str(study.output / f"{size}.training.{form}") for form in FORMS] if curves else []
    for path in paths:
        plot_curves(curves, path)
    return paths


def _mean(name: str, curves: Sequence[Curve]) -> Curve:
    """Return the mean of learning curves, up to the length of the shortest."""
    epochs = min((curve.epochs for curve in curves), key=len)

    def mean(columns: Iterable[list[float]]) -> list[float]:
        return [statistics.mean(values) for values in zip(*columns, strict=False)]  # up to the end of the shortest

    return Curve(
        name=name,
        epochs=epochs,
        minutes=mean(curve.minutes for curve in curves),
        dev=mean(curve.dev for curve in curves),
        train=mean(curve.train for curve in curves),
    )
