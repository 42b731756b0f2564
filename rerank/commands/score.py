"""`moses-rerank score`."""

import argparse

from rerank.commands.arguments import add_ray, add_resources, declarers, read_resources, whole_number

HELP = "append features to every line of an n-best list"
EXAMPLES = """\
  moses-rerank score dev.nbest.gz --source dev.de --feature NMT=neural:models/forward \\
      --feature LMbig=kenlm:lm.arpa.gz --output dev.scored.gz
  zcat test.nbest.gz | moses-rerank score - --source test.de --feature length > test.scored

A feature is written [LABEL=]KIND[:ARG]; `moses-rerank features` lists the kinds. Nothing else in a line is touched."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", help="n-best list, plain or gzip; - is stdin")
    read("--source", required=True, help="source, line k belongs to id k (from 0)")
    read("--feature", action="append", required=True, metavar="[LABEL=]KIND[:ARG]", help="may be repeated")
    write("--output", default="-", help="list to write; a name in .gz is packed")
    add("--verify", type=whole_number, default=0, metavar="N", help="score N random candidates again, one by one")
    add_resources(parser)
    add_ray(parser, "score")


def run(arguments: argparse.Namespace) -> None:
    """Append features to a list."""
    from features.request import parse_requests
    from rerank.lists.append import add_features

    requests = parse_requests(arguments.feature)
    resources = read_resources(arguments, arguments.ray)
    add_features(
        arguments.nbest, arguments.source, requests, arguments.output, resources, arguments.verify, arguments.ray
    )
