"""Plots of measurements: learning curves, curves over corpus sizes, BLEU by length, and weights.

Learning curves follow Cohn et al. (2016), fig. 3, and Luong et al. (2015), fig. 5. BLEU by source length follows fig. 6
of the latter. The report of a reranking also has a chart of BLEU by length, drawn by `rerank.report.charts`, because
its page is made without matplotlib, which PNG and PDF need.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from features.models.config import METRICS
from features.models.training.metrics import read_epochs
from moses_io.files.errors import InputError, counted
from moses_io.files.text import empty_file, read_texts
from moses_io.hypothesis import is_sparse
from moses_io.weights import Weights, names_of_values, read_weights
from rerank.metrics.evaluation import check_marks
from rerank.plots.canvas import COLOURS, COLUMN, canvas, label, legend, names, series_style
from rerank.report.breakdown import Bin, by_length, statistics

BAR = 0.16
"""Inches per bar of weights."""

KEYS = ("epoch", "seconds", "dev_perplexity", "train_perplexity")


@dataclass(frozen=True)
class Curve:
    """Learning curve of a model. Each list has one value per epoch.

    Attributes:
        name: name of the model in the picture.
        epochs: number of the epoch.
        minutes: training time up to this epoch.
        dev: perplexity per word on dev, with `</s>`.
        train: perplexity in training.
    """

    name: str
    epochs: list[float]
    minutes: list[float]
    dev: list[float]
    train: list[float]


def read_curves(folders: Sequence[str]) -> list[Curve]:
    """Read `metrics.jsonl` of model folders.

    Raises:
        InputError: a folder has no such file, the file has no epochs, or one of its lines is not valid.
    """
    curves = []
    for folder, name in zip(folders, names(folders), strict=True):
        path = Path(folder) / METRICS
        if not path.exists():
            raise InputError(f"{folder}: no {METRICS}, expected the folder of a model that was trained")
        rows = read_epochs(Path(folder), KEYS)
        if not rows:
            raise InputError(f"{path}: no epochs. The training of this model did not complete its first epoch")
        epochs, seconds, dev, train = (list(column) for column in zip(*rows, strict=True))
        curves.append(Curve(name, epochs, [each / 60 for each in seconds], dev, train))
    return curves


def plot_curves(curves: Sequence[Curve], output: str) -> None:
    """Draw perplexities over epochs and over minutes. The dashed lines are perplexities in training."""
    with canvas(output, [curve.name for curve in curves]) as figure:
        figure.set_size_inches(COLUMN, 1.4 * COLUMN)
        for axes, name in zip(figure.subplots(2, sharey=True), ("epochs", "minutes"), strict=True):
            for number, curve in enumerate(curves):
                x_values, style = curve.epochs if name == "epochs" else curve.minutes, series_style(number)
                axes.plot(x_values, curve.dev, **style)
                axes.plot(x_values, curve.train, color=style["color"], linestyle="--", linewidth=0.8)
            axes.set(xlabel=name, ylabel="perplexity")
            axes.set_yscale("log")
        figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
        _ticks(figure.axes[0], [value for curve in curves for value in (*curve.dev, *curve.train)])
        kinds = [Line2D([], [], color="#666666"), Line2D([], [], color="#666666", linestyle="--", linewidth=0.8)]
        figure.axes[0].legend(kinds, ["dev", "train"], loc="upper right")
        legend(figure, [curve.name for curve in curves])


def _ticks(axes: Axes, values: Sequence[float]) -> None:
    """Label the axis with plain values: 1, 2, 5, 10, … for a range over a factor of 10, else equidistant ones."""
    finite = [value for value in values if 0 < value < math.inf]
    wide = bool(finite) and max(finite) > 10 * min(finite)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(6))
    axes.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    axes.yaxis.set_minor_locator(NullLocator())


def plot_sizes(
    curves: Mapping[str, Sequence[tuple[int, float, float]]],
    measure: str,
    output: str,
    level: tuple[str, float] | None = None,
) -> None:
    """Draw curves over corpus sizes, on a logarithmic axis.

    Args:
        curves: points of each curve, by its name: sentence pairs, mean over replicates, and standard deviation, which
            is 0 for one replicate.
        measure: name of the y axis.
        output: picture to write.
        level: name and value of a measurement that does not depend on the size. It is a dashed line.
    """
    with canvas(output, [measure, *curves]) as figure:
        figure.set_size_inches(COLUMN, 0.8 * COLUMN)
        axes = figure.subplots()
        for number, points in enumerate(curves.values()):
            style = series_style(number)
            sizes, means, deviations = np.array(points, dtype=np.float64).reshape(-1, 3).T  # (sizes,) each
            axes.plot(sizes, means, **style)
            axes.fill_between(
                sizes, means - deviations, means + deviations, color=style["color"], alpha=0.18, linewidth=0
            )
        if level:
            name, value = level
            axes.axhline(value, color="#666666", linestyle="--", linewidth=0.8)
            axes.annotate(name, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted({size for each in curves.values() for size, *_ in each})))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set(xlabel="sentence pairs of training", ylabel=measure)
        legend(figure, list(curves))


def read_bins(source: str, references: Sequence[str], systems: Sequence[str]) -> list[Bin]:
    """Score files of translations, one line per sentence, in bins of source length.

    Systems have the names that distinguish their files, see `names`.

    Raises:
        InputError: files have different lengths or no lines, a file is given twice, or a translation has segmentation
            marks.
    """
    named = names(systems)
    sources, others = read_texts(source, [*references, *systems])
    if not sources:
        raise empty_file(source)
    translations = others[len(references) :]
    check_marks(dict(zip(systems, translations, strict=True)))
    rows = statistics(others[: len(references)], dict(zip(named, translations, strict=True)))
    return by_length(sources, rows)


def plot_length(bins: Sequence[Bin], output: str) -> None:
    """Draw BLEU of each system over bins of source length. Below each bin is its number of sentences."""
    systems = list(bins[0].scores)
    with canvas(output, systems) as figure:
        figure.set_size_inches(COLUMN, 0.7 * COLUMN)
        axes = figure.subplots()
        for number, system in enumerate(systems):
            axes.plot(range(len(bins)), [each.scores[system] for each in bins], **series_style(number))
        axes.set_xticks(range(len(bins)), [f"{each.span}\n{each.sentences}" for each in bins])
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set(xlabel="tokens of the source, sentences of these lengths", ylabel="BLEU")
        legend(figure, systems)


def weights_by_feature(paths: Sequence[str]) -> tuple[dict[str, list[float]], int]:
    """Read weight files. Return the weights of each dense feature, and the number of sparse features.

    Each value of a dense feature has a list with one weight per run that has the feature. Names are in the order of the
    first file. Several values of a feature are numbered from 0. A sparse feature has `_` in its name and one value,
    like in an n-best list.

    The weights of each run, including sparse ones, are divided by the sum of their absolute values, because only ratios
    count.

    Raises:
        InputError: a file has no weights, or is given twice.
    """
    names(paths)  # only for its errors
    runs = [_normalized(read_weights(path)) for path in paths]
    dense, sparse = dict[str, list[float]](), set[str]()
    for run in runs:
        for name, values in run.items():
            if is_sparse(name, len(values)):
                sparse.add(name)
                continue
            for value_name, value in zip(names_of_values(name, len(values)), values, strict=True):
                dense.setdefault(value_name, []).append(value)
    return dense, len(sparse)


def plot_weights(by_feature: Mapping[str, Sequence[float]], sparse: int, output: str) -> None:
    """Draw a bar for the mean weight of each value, and for several runs the standard deviation and a dot per run."""
    runs = max(map(len, by_feature.values()), default=0)
    labels, positions = [label(name) for name in by_feature], range(len(by_feature))
    with canvas(output, labels) as figure:
        figure.set_size_inches(COLUMN, 0.7 + BAR * len(by_feature))
        axes = figure.subplots()
        axes.barh(positions, [fmean(weights) for weights in by_feature.values()], height=0.7, color="#a6cee3")
        axes.axvline(0, color="black", linewidth=0.6)
        for position, weights in zip(positions, by_feature.values(), strict=True):
            if len(weights) > 1:
                axes.errorbar(fmean(weights), position, xerr=stdev(weights), color="black", capsize=2, linewidth=0.8)
            if runs > 1:
                axes.scatter(weights, [position + 0.25] * len(weights), s=4, color=COLOURS[1], zorder=3)
        axes.set_yticks(positions, labels)
        axes.grid(visible=False, axis="y")
        axes.set_ylim(len(by_feature) - 0.4, -0.6)
        axis_label = f"weight, mean and spread of {runs} runs" if runs > 1 else "weight"
        axes.set_xlabel(axis_label + (f"; {counted(sparse, 'sparse feature')} not shown" if sparse else ""))


def _normalized(weights: Weights) -> Mapping[str, Sequence[float]]:
    total = sum(abs(value) for values in weights.values() for value in values) or 1.0
    return {name: [value / total for value in values] for name, values in weights.items()}
