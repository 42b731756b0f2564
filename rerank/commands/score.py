"""`moses-rerank score`."""

import argparse

from rerank.commands.arguments import add_ray, add_resources, declarers, read_resources, whole_number

HELP = "append features to every line of an n-best list"
EXAMPLES = """\
  moses-rerank score dev.nbest.gz --source dev.de --feature NMT=neural:models/forward \\
      --feature LMbig=kenlm:lm.arpa.gz --output dev.scored.gz
  zcat test.nbest.gz | moses-rerank score - --source test.de --feature length > test.scored

A feature is written [LABEL=]KIND[:ARG]. `moses-rerank features` lists the kinds. The rest of each line stays as it
is. With --input-filter, the new list has filtered texts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", help="n-best list, plain or compressed (- for stdin)")
    read("--source", required=True, help="source, one sentence per line, line k (from 0) for id k")
    read(
        "--feature",
        action="append",
        required=True,
        metavar="[LABEL=]KIND[:ARG]",
        help="feature to append, may be repeated",
    )
    add(
        "--input-filter",
        default="",
        metavar="NAMES",
        help="filters for sources and candidates before features are computed, separated by commas: factors, debpe, "
        "desentencepiece, dejoiner (default: none)",
    )
    write("--output", default="-", help="scored list, compressed if named .gz, .bz2 or .xz (default: stdout)")
    add_resources(parser)
    add_ray(parser, "scoring")
    add(
        "--verify",
        type=whole_number,
        default=0,
        metavar="N",
        help="number of random candidates to score again one by one, to report the largest difference of model scores "
        "(default: 0)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Append features to a list."""
    from features.request import parse_requests
    from moses_io.input_filters import InputFilters
    from rerank.lists.append import add_features

    requests = parse_requests(arguments.feature)
    resources = read_resources(arguments, arguments.ray)
    add_features(
        arguments.nbest, arguments.source, requests, arguments.output, resources, arguments.verify, arguments.ray,
        InputFilters(arguments.input_filter),
    )  # fmt: skip
