"""BLEU by the length of the source (Luong et al. 2015, fig. 6)."""

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from moses_io.text import empty_file, read_texts
from rerank.analysis.bleu import statistics
from rerank.analysis.lengths import Bin, by_length
from rerank.plots.canvas import COLUMN, canvas, legend, names, series_style
from rerank.report.evaluation import check_marks


def read_bins(source: str, references: Sequence[str], systems: Sequence[str]) -> list[Bin]:
    """Score files, a line a sentence, by the names that tell them apart.

    Raises:
        InputError: files of different lengths or without lines, one that is named twice, marks in a translation.
    """
    named = names(systems)
    sources, others = read_texts(source, [*references, *systems])
    if not sources:
        raise empty_file(source)
    translations = others[len(references) :]
    check_marks(dict(zip(systems, translations, strict=True)))
    counted = statistics(others[: len(references)], dict(zip(named, translations, strict=True)))
    return by_length(sources, counted)


def plot_length(bins: Sequence[Bin], output: str) -> None:
    """Draw BLEU of each system over bins of lengths; what stands below says how many sentences each holds."""
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
