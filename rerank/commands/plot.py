"""`moses-rerank plot`."""

import argparse
import importlib
import logging

from rerank.commands.arguments import add_device, declarers, positive_number, whole_number

HELP = "draw plots: attention, learning curves, BLEU by sentence length, weights"
EXAMPLES = """\
  moses-rerank plot attention models/* --source dev.de --target dev.en --sentence 7 --output attention.png
  moses-rerank plot curves models/* --output curves.pdf
  moses-rerank plot length --source test.de --reference test.en test.moses test.reranked --output length.svg
  moses-rerank plot weights seed1/weights.ini seed2/weights.ini seed3/weights.ini --output weights.pdf

The extension of --output sets the format: .png, .svg or .pdf. Plots need matplotlib:
pip install 'moses-rerank[plot]'"""

PLOTS = {
    "attention": "attention of models for a sentence pair: target words in rows, source words in columns",
    "curves": "perplexity of models on dev (solid) and in training (dashed), over epochs and over minutes",
    "length": "BLEU of translations by source length",
    "weights": "weights of dense features. Several runs are shown as dots with means and standard deviations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of each plot."""
    plots = parser.add_subparsers(dest="plot", required=True, metavar="PLOT")
    parsers = {
        name: plots.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        for name, text in PLOTS.items()
    }
    add, read, _ = declarers(parsers["attention"])
    read("models", nargs="+", metavar="MODEL", help="model folder")
    read("--source", required=True, help="source, one tokenized sentence per line")
    read("--target", required=True, help="translation, line by line")
    add("--sentence", required=True, type=whole_number, metavar="ID", help="index of the sentence pair, from 0")
    read("--alignment", help="word alignment of all pairs, as Moses' aligned.grow-diag-final-and, shown as circles")
    add(
        "--word",
        type=positive_number,
        metavar="J",
        help="number (from 1) of a target word, or source word for backward models, to show its attention in each "
        "dimension of models with granularity=fine",
    )
    add_device(parsers["attention"])
    _, read, _ = declarers(parsers["curves"])
    read("models", nargs="+", metavar="MODEL", help="model folder")
    _, read, _ = declarers(parsers["length"])
    read("systems", nargs="+", metavar="SYSTEM", help="translations, one per line")
    read("--source", required=True, help="source, one tokenized sentence per line")
    read("--reference", action="append", required=True, help="reference translations, one per line, may be repeated")
    _, read, _ = declarers(parsers["weights"])
    read("weights", nargs="+", metavar="INI", help="weights of a run, such as the output of `tune`")
    for each in parsers.values():
        _, _, write = declarers(each)
        write("--output", required=True, help="plot, in the format of its extension: .png, .svg or .pdf")


def run(arguments: argparse.Namespace) -> None:
    """Draw a plot."""
    from moses_io.files.errors import InputError

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError:
        raise InputError("plots need matplotlib: pip install 'moses-rerank[plot]'") from None
    from rerank.plots.canvas import format_of

    format_of(arguments.output)  # only for its errors
    {"attention": _attention, "curves": _curves, "length": _length, "weights": _weights}[arguments.plot](arguments)


def _attention(arguments: argparse.Namespace) -> None:
    from moses_io.files.errors import InputError
    from rerank.plots.attention import dimensions, matrices, plot_grids, read_pair

    if arguments.word and arguments.alignment:
        raise InputError("--alignment marks links between words, which --word does not show")
    pair, links = read_pair(arguments.source, arguments.target, arguments.sentence, arguments.alignment)
    if arguments.word:
        grids = dimensions(arguments.models, arguments.device, pair, arguments.word)
    else:
        grids = matrices(arguments.models, arguments.device, pair, links)
    plot_grids(grids, arguments.output)


def _curves(arguments: argparse.Namespace) -> None:
    from rerank.plots.measurements import plot_curves, read_curves

    plot_curves(read_curves(arguments.models), arguments.output)


def _length(arguments: argparse.Namespace) -> None:
    from rerank.plots.measurements import plot_length, read_bins

    plot_length(read_bins(arguments.source, arguments.reference, arguments.systems), arguments.output)


def _weights(arguments: argparse.Namespace) -> None:
    from rerank.plots.measurements import plot_weights, weights_by_feature

    plot_weights(*weights_by_feature(arguments.weights), arguments.output)
