"""`moses-rerank apply`."""

import argparse

from moses_io.errors import InputError
from rerank.commands.arguments import add_choices, add_resources, positive_number, read_outputs, read_resources

HELP = "rerank new lists with a trained reranker"
EXAMPLES = """\
  moses-rerank apply work/reranker test.nbest.gz --source test.de --output test.out
  moses -f moses.ini -n-best-list - 100 distinct < news.de | moses-rerank apply reranker --source news.de --batch 1

A reranker is the folder that `run` makes. Each batch is written as soon as it is complete, which the first line of the
next sentence tells; the source may be a pipe, or a file that grows beside the list."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("reranker", metavar="RERANKER", help="folder")
    add("list", nargs="?", default="-", metavar="NBEST", help="n-best list as Moses wrote it (default: stdin)")
    add("--source", required=True, metavar="FILE", help="source, line k belongs to id k (from 0)")
    add("--output", default="-", metavar="FILE", help="text to write, one line a source sentence")
    add(
        "--nbest", dest="reranked", metavar="FILE", help="also write the list with all features, best first, new totals"
    )
    add_choices(parser)
    add(
        "--batch",
        type=positive_number,
        default=0,
        metavar="N",
        help="sentences scored together, at most (default: those of 10,000 candidates)",
    )
    add(
        "--feature",
        action="append",
        default=[],
        metavar="LABEL=KIND[:ARG]",
        help="in place of the reranker's own of this label, such as scores of this list; may be repeated",
    )
    add("--allow-code", action="store_true", help="let features of the reranker that are code of users run")
    add_resources(parser)


def run(arguments: argparse.Namespace) -> None:
    """Apply."""
    from rerank.reranker.apply import Application, apply

    features = {}
    for text in arguments.feature:
        label, equals, kind = text.partition("=")
        if not equals:
            raise InputError(f"--feature {text}: expected LABEL=KIND[:ARG]")
        features[label] = kind
    how = Application(
        features,
        arguments.allow_code,
        arguments.batch,
        arguments.on_missing,
        moses_output=arguments.moses_output,
    )
    outputs = read_outputs(arguments)
    resources = read_resources(arguments)
    apply(arguments.reranker, arguments.list, arguments.source, outputs, resources, how)
