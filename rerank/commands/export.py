"""`moses-rerank export`."""

import argparse

from rerank.commands.arguments import add_filter, add_initial_weights, declarers

HELP = "write a folder to tune a scored n-best list with Moses' kbmira, mert or pro"
EXAMPLES = """\
  moses-rerank export dev.scored.gz --reference dev.en --initial-weights moses.ini --output tuning
  MOSES=~/mosesdecoder/bin tuning/tune.sh kbmira
  moses-rerank import-weights tuning tuning/kbmira.out --output weights.ini"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", nargs="+", help="scored n-best list of the tuning set, several lists are pooled")
    read("--reference", action="append", required=True, help="reference translations, one per line, may be repeated")
    add_initial_weights(read)
    write("--output", required=True, metavar="DIR", help="folder to create")
    add_filter(add)


def run(arguments: argparse.Namespace) -> None:
    """Make a folder in which Moses' tuners can tune a list."""
    from moses_io.filters import Filters
    from rerank.moses.exchange import export
    from rerank.tuning.tuning_set import Lists

    export(
        Lists(arguments.nbest, arguments.reference, Filters(arguments.filter)),
        arguments.initial_weights,
        arguments.output,
    )
