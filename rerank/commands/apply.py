"""`moses-rerank apply`."""

import argparse
import os

from moses_io.files.errors import InputError
from rerank.commands.arguments import (
    add_choices,
    add_confidence,
    add_resources,
    declarers,
    positive_number,
    read_outputs,
)

HELP = "rerank new n-best lists with a trained reranker"
EXAMPLES = """\
  moses-rerank apply work/reranker test.nbest.gz --source test.de --output test.out
  moses -f moses.ini -n-best-list - 100 distinct < news.de | \\
      moses-rerank apply work/reranker --source news.de --batch-size 1

A reranker is a folder that `run` or `retune` has made. The output has one line per source sentence. On stdout, each
batch appears as soon as it is complete. A file of --output appears at the end. A sentence is complete when the first
line of the next sentence arrives. The source may also be a pipe, or a file that grows together with the list."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    read("reranker", metavar="RERANKER", help="folder of the reranker")
    read("list", nargs="?", default="-", metavar="NBEST", help="n-best list as written by Moses (default: stdin)")
    read("--source", required=True, help="source, one sentence per line, line k (from 0) for id k")
    write("--output", default="-", help="best translations, one line per source sentence (default: stdout)")
    add_choices(parser, "n-best list with all features and new total scores, best candidate first")
    add_confidence(parser)
    resources = parser.add_argument_group("resources")
    resources.add_argument(
        "--batch-size",
        type=positive_number,
        default=0,
        metavar="N",
        help="maximum number of sentences scored together (default: about 10,000 candidates in all)",
    )
    add_resources(resources)
    add, read, _ = declarers(parser.add_argument_group("rare options"))
    read(
        "--feature",
        action="append",
        default=[],
        metavar="LABEL=KIND[:ARG]",
        help="replacement for the feature LABEL of the reranker, such as LABEL=scores:FILE with scores for NBEST, "
        "may be repeated",
    )
    add(
        "--allow-code",
        action="store_true",
        help="permission for features that run code (command, server, module:Class)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the best candidate of each sentence. The output has one line for each source sentence."""
    from moses_io.files.streams import is_live
    from moses_io.nbest import read_moses_output
    from rerank.confidence.confidence import CONFIDENCE
    from rerank.linear.missing import read_replacements
    from rerank.linear.selection import write_choices
    from rerank.reranker.reranker import Reranker

    features = {}
    for text in arguments.feature:
        label, equals, kind = text.partition("=")
        if not equals:
            raise InputError(f"--feature {text}: expected LABEL=KIND[:ARG]")
        if label in features:
            raise InputError(f"--feature {text}: label {label!r} is given twice")
        features[label] = kind
    outputs = read_outputs(arguments)
    nbest, source = arguments.list, arguments.source
    whole = os.path.isfile(source) and not is_live(nbest)  # otherwise the source may not be complete yet
    replacements = read_replacements(source if whole else None, None, arguments.on_missing)
    moses_output = None
    if arguments.moses_output:
        moses_output = read_moses_output(arguments.moses_output)
        if isinstance(replacements.sentences, int):
            moses_output.check(replacements.sentences, source if whole else f"the {replacements.name}")
    reranker = Reranker.load(
        arguments.reranker,
        features=features,
        allow_code=arguments.allow_code,
        device=arguments.device,
        precision=arguments.precision,
        cache=arguments.cache,
    )
    estimator = reranker.estimator(bool(arguments.moses_output)) if arguments.confidence else None
    if arguments.confidence and not estimator:
        made = "Make it again with `moses-rerank run` of this version"
        raise InputError(f"{arguments.reranker}: no {CONFIDENCE}, which --confidence needs. {made}")
    write_choices(
        reranker.rankings(nbest, source, replacements, arguments.batch_size, moses_output), outputs, estimator
    )
