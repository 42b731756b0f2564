"""`moses-rerank rerank`."""

import argparse

from moses_io.errors import InputError
from rerank.commands.arguments import add_choices, read_outputs, whole_number

HELP = "write the best candidate of each sentence under given weights"
EXAMPLES = """\
  moses-rerank rerank test.scored.gz --weights weights.ini --source test.de --output test.out
  moses-rerank rerank test.scored.gz --weights weights.ini --source test.de --on-missing test.moses > test.out
  moses-rerank rerank work/test.nbest.gz --weights work/weights.ini --estimator work/confidence.json \\
      --confidence test.confidence --output test.out

One line a source sentence, always: without --source or --sentences only gaps inside the list can be seen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("nbest", metavar="NBEST", help="n-best list with the features that were tuned; - is stdin")
    parser.add_argument("--weights", required=True, metavar="FILE", help="weights from `tune`, or any [weight] ini")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--source", metavar="FILE", help="source, which tells how many lines to write")
    size.add_argument("--sentences", type=whole_number, metavar="N", help="how many lines to write")
    parser.add_argument("--nbest", dest="reranked", metavar="FILE", help="also write the list, best first, new totals")
    add_choices(parser)
    parser.add_argument("--estimator", metavar="FILE", help="confidence.json of `run`, for --confidence")
    parser.add_argument("--output", default="-", metavar="FILE", help="text to write")


def run(arguments: argparse.Namespace) -> None:
    """Rerank."""
    from moses_io.nbest import read_moses_output
    from rerank.linear.selection import read_holes, rerank

    holes = read_holes(arguments.source, arguments.sentences, arguments.on_missing)
    outputs = read_outputs(arguments)
    if bool(arguments.confidence) != bool(arguments.estimator):
        raise InputError("--confidence needs --estimator, and --estimator needs --confidence")
    estimator = None
    if arguments.estimator:
        from rerank.confidence.file import read_estimator

        estimator = read_estimator(arguments.estimator, arguments.weights, bool(arguments.moses_output)).estimate
    moses_output = None
    if arguments.moses_output:
        moses_output = read_moses_output(arguments.moses_output, arguments.source or "", marks=True)
        if arguments.sentences is not None:
            moses_output.check(arguments.sentences, "the source")
    rerank(arguments.nbest, arguments.weights, holes, outputs, estimator, moses_output)
