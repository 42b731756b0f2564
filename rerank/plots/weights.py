"""Weights of several runs of tuning, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_io.errors import counted
from moses_io.hypothesis import is_sparse
from moses_io.weights import Weights, names_of_values, read_weights
from rerank.plots.canvas import COLOURS, COLUMN, canvas, label, names

BAR = 0.16
"""Inches that a bar takes."""


@dataclass(frozen=True)
class Spread:
    """The weights of one value of a feature: one of each run that has it."""

    name: str
    weights: list[float]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.weights))

    @property
    def deviation(self) -> float | None:
        """Their standard deviation, n - 1 below; None for a single run."""
        return float(np.std(self.weights, ddof=1)) if len(self.weights) > 1 else None


def read_spreads(paths: Sequence[str]) -> tuple[list[Spread], int]:
    """Read weights, and return those of dense features, as the first file orders them, and how many are sparse.

    The weights of a run, the sparse ones included, are divided by the sum of their sizes; only ratios count. Several
    values of a feature are numbered from 0. A sparse feature has `_` in its name and one value, as in a list.

    Raises:
        InputError: a file that holds no weights, or is named twice.
    """
    names(paths)
    runs = [_normalized(read_weights(path)) for path in paths]
    dense, sparse = dict[str, list[float]](), set[str]()
    for run in runs:
        for name, values in run.items():
            if is_sparse(name, len(values)):
                sparse.add(name)
                continue
            for own, value in zip(names_of_values(name, len(values)), values, strict=True):
                dense.setdefault(own, []).append(value)
    return [Spread(name, weights) for name, weights in dense.items()], len(sparse)


def plot_weights(spreads: Sequence[Spread], sparse: int, output: str) -> None:
    """Draw a bar a value, as long as the mean; of several runs also one standard deviation and a dot a run."""
    runs = max((len(spread.weights) for spread in spreads), default=0)
    labels, places = [label(spread.name) for spread in spreads], range(len(spreads))
    with canvas(output, labels) as figure:
        figure.set_size_inches(COLUMN, 0.7 + BAR * len(spreads))
        axes = figure.subplots()
        axes.barh(places, [spread.mean for spread in spreads], height=0.7, color="#a6cee3")
        axes.axvline(0, color="black", linewidth=0.6)
        for place, spread in zip(places, spreads, strict=True):
            if spread.deviation is not None:
                axes.errorbar(spread.mean, place, xerr=spread.deviation, color="black", capsize=2, linewidth=0.8)
            if runs > 1:
                axes.scatter(spread.weights, [place + 0.25] * len(spread.weights), s=4, color=COLOURS[1], zorder=3)
        axes.set_yticks(places, labels)
        axes.grid(visible=False, axis="y")
        axes.set_ylim(len(spreads) - 0.4, -0.6)
        of = f"weight, mean and spread of {runs} runs" if runs > 1 else "weight"
        axes.set_xlabel(of + (f"; {counted(sparse, 'sparse feature')} not shown" if sparse else ""))


def _normalized(weights: Weights) -> Mapping[str, Sequence[float]]:
    total = sum(abs(value) for values in weights.values() for value in values) or 1.0
    return {name: [value / total for value in values] for name, values in weights.items()}
