"""`moses-rerank apply`."""

import argparse
import os
from pathlib import Path

from moses_io.files.errors import InputError
from rerank.commands.arguments import add_choices, add_resources, declarers, positive_number, read_outputs

HELP = "rerank new lists with a trained reranker"
EXAMPLES = """\
  moses-rerank apply work/reranker test.nbest.gz --source test.de --output test.out
  moses -f moses.ini -n-best-list - 100 distinct < news.de | moses-rerank apply reranker --source news.de --batch 1

A reranker is the folder that `run` makes. Each batch is written as soon as it is complete, which the first line of the
next sentence tells; the source may be a pipe, or a file that grows beside the list."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("reranker", metavar="RERANKER", help="folder")
    read("list", nargs="?", default="-", metavar="NBEST", help="n-best list as Moses wrote it (default: stdin)")
    read("--source", required=True, help="source, line k belongs to id k (from 0)")
    write("--output", default="-", help="text to write, one line a source sentence")
    write("--nbest", help="also write the list with all features, best first, new totals")
    add_choices(parser)
    add(
        "--batch",
        type=positive_number,
        default=0,
        metavar="N",
        help="sentences scored together, at most (default: those of 10,000 candidates)",
    )
    read(
        "--feature",
        action="append",
        default=[],
        metavar="LABEL=KIND[:ARG]",
        help="in place of the reranker's own of this label, such as scores of this list; may be repeated",
    )
    add("--allow-code", action="store_true", help="let features of the reranker that are code of users run")
    add_resources(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the best candidate of each sentence. The output has one line for each source sentence."""
    from moses_io.files.streams import is_live
    from moses_io.nbest import read_moses_output
    from rerank.confidence.confidence import CONFIDENCE, read_estimator
    from rerank.linear.selection import read_holes, write_choices
    from rerank.reranker.folder import WEIGHTS
    from rerank.reranker.reranker import Reranker

    features = {}
    for text in arguments.feature:
        label, equals, kind = text.partition("=")
        if not equals:
            raise InputError(f"--feature {text}: expected LABEL=KIND[:ARG]")
        features[label] = kind
    outputs = read_outputs(arguments)
    nbest, source = arguments.list, arguments.source
    holes = read_holes(None, None, arguments.on_missing)
    moses_output = None
    if arguments.moses_output:
        whole = os.path.isfile(source) and not is_live(nbest)  # otherwise the source may not be complete yet
        moses_output = read_moses_output(arguments.moses_output, source if whole else "")
    reranker = Reranker.load(
        arguments.reranker,
        features=features,
        allow_code=arguments.allow_code,
        device=arguments.device,
        precision=arguments.precision,
        cache=arguments.cache,
    )
    estimator = None
    if arguments.confidence:
        folder = Path(arguments.reranker)
        if not (folder / CONFIDENCE).is_file():
            made = "make it anew by `moses-rerank run` of this version"
            raise InputError(f"{folder}: a reranker without {CONFIDENCE}, which tells how good its choices are; {made}")
        given = bool(arguments.moses_output)
        estimator = read_estimator(str(folder / CONFIDENCE), str(folder / WEIGHTS), given).estimate
    write_choices(reranker.rankings(nbest, source, holes, arguments.batch, moses_output), outputs, estimator)
