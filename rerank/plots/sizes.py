"""Curves over sizes of the training corpus: BLEU or perplexity, with bands of one standard deviation each way."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter

from rerank.plots.canvas import COLUMN, canvas, legend, series_style


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
