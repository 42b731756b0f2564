"""Learning curves of models (Cohn et al. 2016, fig. 3; Luong et al. 2015, fig. 5), and curves over corpus sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from features.models.config import METRICS
from features.models.training.request import read_epochs
from moses_io.errors import InputError
from rerank.plots.canvas import COLUMN, canvas, legend, names, series_style

KEYS = ("epoch", "seconds", "dev_perplexity", "train_perplexity")


@dataclass(frozen=True)
class Curve:
    """How a model learned: a number an epoch in each list."""

    name: str
    epochs: list[float]
    minutes: list[float]
    dev: list[float]  # perplexity a word with </s>
    train: list[float]


def read_curves(folders: Sequence[str]) -> list[Curve]:
    """Read `metrics.jsonl` of model folders.

    Raises:
        InputError: a folder without it, or a line of it that is not one of an epoch.
    """
    curves = []
    for folder, name in zip(folders, names(folders), strict=True):
        path = Path(folder) / METRICS
        if not path.exists():
            raise InputError(f"{folder}: no {METRICS}, expected the folder of a model that was trained")
        rows = read_epochs(Path(folder), KEYS)
        if not rows:
            raise InputError(f"{path}: no epochs; the training of this model did not get to the end of its first one")
        epochs, seconds, dev, train = (list(column) for column in zip(*rows, strict=True))
        curves.append(Curve(name, epochs, [each / 60 for each in seconds], dev, train))
    return curves


def plot_curves(curves: Sequence[Curve], output: str) -> None:
    """Draw perplexities on dev, and dashed those of training, over epochs and over minutes."""
    with canvas(output, [curve.name for curve in curves]) as figure:
        figure.set_size_inches(COLUMN, 1.4 * COLUMN)
        for axes, name in zip(figure.subplots(2, sharey=True), ("epochs", "minutes"), strict=True):
            for number, curve in enumerate(curves):
                along, style = curve.epochs if name == "epochs" else curve.minutes, series_style(number)
                axes.plot(along, curve.dev, **style)
                axes.plot(along, curve.train, color=style["color"], linestyle="--", linewidth=0.8)
            axes.set(xlabel=name, ylabel="perplexity")
            axes.set_yscale("log")
        figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
        _ticks(figure.axes[0], [value for curve in curves for value in (*curve.dev, *curve.train)])
        kinds = [Line2D([], [], color="#666666"), Line2D([], [], color="#666666", linestyle="--", linewidth=0.8)]
        figure.axes[0].legend(kinds, ["dev", "train"], loc="upper right")
        legend(figure, [curve.name for curve in curves])


def _ticks(axes: Axes, values: Sequence[float]) -> None:
    """Put plain numbers on the axis: 1, 2, 5, 10, … where it spans much, else some that are equally far apart."""
    finite = [value for value in values if 0 < value < math.inf]
    wide = bool(finite) and max(finite) > 10 * min(finite)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(6))
    axes.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    axes.yaxis.set_minor_locator(NullLocator())


@dataclass(frozen=True)
class SizeCurve:
    """A number of each size, over replicates: means, and standard deviations, 0 where there is one replicate."""

    name: str
    sizes: list[int]
    means: list[float]
    deviations: list[float]


@dataclass(frozen=True)
class Level:
    """A number that does not depend on the size, drawn as a dashed line."""

    name: str
    value: float


def plot_sizes(curves: Sequence[SizeCurve], measure: str, output: str, level: Level | None = None) -> None:
    """Draw curves over sentence pairs, on a logarithmic axis; `measure` stands beside the other one."""
    with canvas(output, [measure, *(curve.name for curve in curves)]) as figure:
        figure.set_size_inches(COLUMN, 0.8 * COLUMN)
        axes = figure.subplots()
        for number, curve in enumerate(curves):
            style = series_style(number)
            axes.plot(curve.sizes, curve.means, **style)
            pairs = list(zip(curve.means, curve.deviations, strict=True))
            low, high = [mean - spread for mean, spread in pairs], [mean + spread for mean, spread in pairs]
            axes.fill_between(curve.sizes, low, high, color=style["color"], alpha=0.18, linewidth=0)
        if level:
            axes.axhline(level.value, color="#666666", linestyle="--", linewidth=0.8)
            axes.annotate(level.name, (1, level.value), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted({size for curve in curves for size in curve.sizes})))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.set(xlabel="sentence pairs of training", ylabel=measure)
        legend(figure, [curve.name for curve in curves])
