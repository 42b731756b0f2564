"""`moses-rerank plot`."""

import argparse
import importlib
import logging

from rerank.commands.arguments import add_device, declarers, positive_number, whole_number

HELP = "draw what models and runs of tuning do: attention, learning curves, BLEU by length, weights"
EXAMPLES = """\
  moses-rerank plot attention models/* --source dev.de --target dev.en --sentence 7 --output attention.png
  moses-rerank plot curves models/* --output curves.pdf
  moses-rerank plot length --source test.de --reference test.en test.moses test.reranked --output length.svg
  moses-rerank plot weights seed1/weights.ini seed2/weights.ini seed3/weights.ini --output weights.pdf

The ending of --output says what is written: .png, .svg or .pdf. Needs matplotlib: pip install moses-rerank[plot]."""

PICTURES = {
    "attention": "what models attend to in a sentence pair: a matrix each, source words across, target words down",
    "curves": "perplexity of models on dev, and dashed on their corpus, over epochs and minutes",
    "length": "BLEU of translations by the length of the source",
    "weights": "weights of dense features; of several runs their means, standard deviations, and each as a dot",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of each plot."""
    pictures = parser.add_subparsers(dest="picture", required=True, metavar="PICTURE")
    parsers = {name: pictures.add_parser(name, help=text, description=text) for name, text in PICTURES.items()}
    add, read, _ = declarers(parsers["attention"])
    read("models", nargs="+", metavar="MODEL", help="model folder")
    read("--source", required=True, help="source, one tokenized sentence a line")
    read("--target", required=True, help="its translation, line by line")
    add("--sentence", required=True, type=whole_number, metavar="ID", help="number of the pair, from 0")
    read("--alignments", help="links of all pairs, as aligned.grow-diag-final-and: circles mark them")
    add(
        "--word",
        type=positive_number,
        metavar="J",
        help="of models with granularity=fine: what the J-th word of the target, from 1, attends to in each dimension; "
        "of a backward model, of the source",
    )
    add_device(parsers["attention"])
    _, read, _ = declarers(parsers["curves"])
    read("models", nargs="+", metavar="MODEL", help="model folder")
    _, read, _ = declarers(parsers["length"])
    read("systems", nargs="+", metavar="SYSTEM", help="translations, one a line")
    read("--source", required=True, help="source, one tokenized sentence a line")
    read("--reference", action="append", required=True, help="may be repeated")
    _, read, _ = declarers(parsers["weights"])
    read("weights", nargs="+", metavar="INI", help="weights of a run")
    for each in parsers.values():
        _, _, write = declarers(each)
        write("--output", required=True, help="picture to write: .png, .svg or .pdf")


def run(arguments: argparse.Namespace) -> None:
    """Draw a plot."""
    from moses_io.files.errors import InputError

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError:
        raise InputError("plots need matplotlib: pip install moses-rerank[plot]") from None
    from rerank.plots.canvas import form_of

    form_of(arguments.output)
    {"attention": _attention, "curves": _curves, "length": _length, "weights": _weights}[arguments.picture](arguments)


def _attention(arguments: argparse.Namespace) -> None:
    from moses_io.files.errors import InputError
    from rerank.plots.attention import dimensions, matrices, plot_grids, read_pair

    if arguments.word and arguments.alignments:
        raise InputError("--alignments marks links between words, which --word does not show")
    pair, links = read_pair(arguments.source, arguments.target, arguments.sentence, arguments.alignments)
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
    from rerank.plots.measurements import plot_weights, read_spreads

    plot_weights(*read_spreads(arguments.weights), arguments.output)
