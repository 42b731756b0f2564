"""`moses-rerank rerank`."""

import argparse

from moses_io.files.errors import InputError, shown
from moses_io.files.text import number
from rerank.commands.arguments import InputPath, add_choices, add_confidence, declarers, read_outputs, whole_number

HELP = "write the best candidate of each sentence under given weights"
EXAMPLES = """\
  moses-rerank rerank test.scored.gz --weights weights.ini --source test.de --output test.out
  moses-rerank rerank test.scored.gz --weights weights.ini --source test.de --on-missing test.moses > test.out
  moses-rerank rerank work/test.nbest.gz --weights work/weights.ini --estimator work/confidence.json \\
      --confidence test.confidence --output test.out

The output has one line per source sentence. The number of source sentences comes from --source, from --sentences or
from the file of --on-missing. Without them, missing sentences at the end of the list cannot be detected."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("list", metavar="NBEST", help="n-best list with all features that have a weight (- for stdin)")
    read("--weights", required=True, help="output of `tune`, or another file of weights")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--source", type=InputPath, metavar="FILE", help="source, which gives the number of sentences")
    size.add_argument("--sentences", type=whole_number, metavar="N", help="number of source sentences")
    write("--output", default="-", help="best translations, one line per source sentence (default: stdout)")
    add_choices(parser, "n-best list with new total scores, best candidate first")
    add(
        "--mbr",
        choices=["chrf"],
        help="minimum Bayes risk decoding: choose by the expected chrF against all candidates, which is also the total "
        "in --nbest",
    )
    add(
        "--mbr-scale",
        type=_scale,
        metavar="S",
        help="factor of the scores that give the probabilities of the candidates, 0 for equal probabilities "
        "(default: 1)",
    )
    _, read, _ = declarers(add_confidence(parser))
    read("--estimator", help="confidence.json of `run`, required for --confidence")


def run(arguments: argparse.Namespace) -> None:
    """Write the best candidates."""
    from moses_io.files.streams import name_of
    from moses_io.nbest import read_moses_output
    from rerank.linear.missing import read_replacements
    from rerank.linear.selection import choose_by_weights
    from rerank.linear.weights import load_weight_file

    if arguments.mbr_scale is not None and not arguments.mbr:
        raise InputError("--mbr-scale needs --mbr")
    if arguments.mbr and arguments.confidence:
        raise InputError("--confidence is for choices by the weights, not by --mbr")
    replacements = read_replacements(arguments.source, arguments.sentences, arguments.on_missing)
    outputs = read_outputs(arguments)
    if bool(arguments.confidence) != bool(arguments.estimator):
        raise InputError("--confidence needs --estimator, and --estimator needs --confidence")
    content, name, estimator = load_weight_file(arguments.weights), name_of(arguments.weights), None
    if arguments.estimator:
        from rerank.confidence.confidence import read_estimator

        estimator = read_estimator(arguments.estimator, content.weights, name, bool(arguments.moses_output)).estimate
    moses_output = None
    if arguments.moses_output:
        moses_output = read_moses_output(arguments.moses_output, marks=True)
        if isinstance(replacements.sentences, int):
            moses_output.check(replacements.sentences, arguments.source or f"the {replacements.name}")
    default_scale = 1.0 if arguments.mbr else None
    scale = default_scale if arguments.mbr_scale is None else arguments.mbr_scale
    choose_by_weights(arguments.list, content, name, replacements, outputs, estimator, moses_output, scale)


def _scale(text: str) -> float:
    value = number(text)
    if value is None or value < 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0, found {shown(text)}")
    return value
