"""Attention on a sentence pair (Luong et al. 2015, fig. 7; Cohn et al. 2016, fig. 4; Choi et al. 2018, fig. 2-3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from features.arrays import AttentionRows
from features.models.alignment import Aligner, dimension_rows
from features.models.config import read_config
from features.models.device import find_device
from features.models.folder import load_model
from features.models.scoring.pairs import SentencePair
from moses_io.alignment import Alignment, read_alignments
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import name_of
from moses_io.files.text import check_markup, read_parallel, tokens
from rerank.plots.canvas import COLOURS, canvas, label, names

CELL = 0.16
"""Inches per word, in both directions."""
DIMENSION = 0.012
CHARACTER_WIDTH = 0.075
"""Maximum inches per character."""


@dataclass(frozen=True)
class Grid:
    """A matrix of weights from 0 to 1, with names of rows and columns. The name of the model is drawn above it."""

    model: str
    weights: AttentionRows  # (rows, columns)
    rows: Sequence[str]
    columns: Sequence[str]  # empty if the columns are dimensions, which are numbered
    links: Alignment = frozenset()  # cells (column, row) to mark


def read_pair(source: str, target: str, sentence: int, alignments: str | None) -> tuple[SentencePair, Alignment]:
    """Return a sentence pair of two files, by its number from 0, and its links.

    There are no links without a file of alignments.

    Raises:
        InputError: there is no such sentence, one side of it is empty, or the files do not fit each other.
    """
    lines = read_parallel(source, target)
    pairs = [(tuple(tokens(one)), tuple(tokens(other))) for one, other in lines]
    if sentence >= len(pairs):
        raise InputError(f"{name_of(source)} has {counted(len(pairs), 'line')}, there is no sentence {sentence}")
    check_markup(source, [lines[sentence][0]], sentence + 1)
    for path, words in zip((source, target), pairs[sentence], strict=True):
        if not words:
            raise InputError(f"{name_of(path)}:{sentence + 1}: expected words to attend to, found none")
    if not alignments:
        return pairs[sentence], frozenset()
    source_lengths, target_lengths = ([len(pair[side]) for pair in pairs] for side in (0, 1))
    return pairs[sentence], read_alignments(alignments, source_lengths, target_lengths)[sentence]


def matrices(folders: Sequence[str], device: str, pair: SentencePair, links: Alignment) -> list[Grid]:
    """Return the attention matrix of each model: rows are target words, columns are source words.

    Backward models also have target words as rows. Raises `InputError` if a folder has no model with attention.
    """
    source, target = pair
    named = names(folders)
    aligners = [Aligner([folder], device) for folder in folders]
    attentions = [aligner.align([pair])[0].attention for aligner in aligners]  # each (J, I)
    return [
        Grid(name, weights, rows=target, columns=source, links=links)
        for name, weights in zip(named, attentions, strict=True)
    ]


def dimensions(folders: Sequence[str], device: str, pair: SentencePair, word: int) -> list[Grid]:
    """Return, for each fine-grained model, the attention weights of one output word: input words by dimensions.

    Args:
        folders: folders of the models. A backward model outputs the source.
        device: `auto`, `cpu` or `cuda`.
        pair: source and target.
        word: number of the output word, from 1.

    Raises:
        InputError: a model has one weight per annotation, its output has fewer words, or weights are not finite.
    """
    grids = []
    for folder, name in zip(folders, names(folders), strict=True):
        config = read_config(Path(folder))
        if config.architecture.granularity != "fine":
            raise InputError(f"{folder}: attention has one weight per word. Dimensions need granularity=fine")
        attended, predicted = pair[::-1] if config.direction == "backward" else pair
        if word > len(predicted):
            raise InputError(
                f"--word {word}: the sentence that {folder} predicts has {counted(len(predicted), 'word')}"
            )
        weights = dimension_rows(load_model(Path(folder), find_device(device)), pair)[word - 1]  # (I, K)
        if not np.isfinite(weights).all():
            raise InputError(f"{folder}: the attention of this model is not finite")
        grids.append(Grid(f"{name}: {predicted[word - 1]}", weights, rows=attended, columns=()))
    return grids


def plot_grids(grids: Sequence[Grid], output: str) -> None:
    """Draw matrices next to each other. Weight 1 is black, and links are circles."""
    words = [label(word) for grid in grids for word in (grid.model, *grid.rows, *grid.columns)]
    with canvas(output, words) as figure:
        figure.set_layout_engine("none")
        for axes, grid in zip(_axes_of(figure, grids), grids, strict=True):
            axes.imshow(grid.weights, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="none")
            axes.set_title(label(grid.model))
            axes.grid(visible=False)
            axes.tick_params(length=0)
            if grid.columns:
                axes.set_xticks(range(len(grid.columns)), [label(word) for word in grid.columns], rotation=90)
                _draw_links(axes, grid)
            else:
                axes.set_xlabel("dimension of the annotation, from 0")
            same = bool(grid is not grids[0] and grid.rows == grids[0].rows)
            axes.set_yticks(range(len(grid.rows)), [] if same else [label(word) for word in grid.rows])


def _axes_of(figure: Figure, grids: Sequence[Grid]) -> list[Axes]:
    """Return axes of the size of each matrix, from left to right, aligned at the top."""
    widths = [CELL * len(grid.columns) or DIMENSION * grid.weights.shape[1] for grid in grids]
    heights = [CELL * len(grid.rows) for grid in grids]
    spaces = [
        max(width, CHARACTER_WIDTH * len(label(grid.model))) + CELL for width, grid in zip(widths, grids, strict=True)
    ]
    for index, grid in enumerate(grids):
        if index and grid.rows != grids[0].rows:
            spaces[index - 1] += CHARACTER_WIDTH * max(len(label(word)) for word in grid.rows)
    whole, tallest = sum(spaces), max(heights)
    figure.set_size_inches(whole, tallest)
    lefts = [sum(spaces[:index]) for index in range(len(grids))]
    return [
        figure.add_axes((left / whole, 1 - height / tallest, width / whole, height / tallest))
        for left, width, height in zip(lefts, widths, heights, strict=True)
    ]


def _draw_links(axes: Axes, grid: Grid) -> None:
    """Draw thin lines between words, and a circle around each link."""
    axes.set_xticks([column - 0.5 for column in range(1, len(grid.columns))], minor=True)
    axes.set_yticks([row - 0.5 for row in range(1, len(grid.rows))], minor=True)
    axes.grid(visible=True, which="minor", linewidth=0.3)
    axes.tick_params(which="minor", length=0)
    if grid.links:
        columns, rows = zip(*sorted(grid.links), strict=True)
        axes.scatter(columns, rows, s=32, facecolors="none", edgecolors=COLOURS[1], linewidths=1)
