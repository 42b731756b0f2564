"""`moses-rerank export`."""

import argparse

from rerank.commands.arguments import declarers

HELP = "make a folder in which Moses' own kbmira, mert and pro tune a scored list"
EXAMPLES = """\
  moses-rerank export dev.scored.gz --reference dev.en --start moses.ini --output tuning
  MOSES=~/mosesdecoder/bin tuning/tune.sh kbmira
  moses-rerank import-weights tuning tuning/kbmira.out --output weights.ini"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", nargs="+", help="scored n-best list; several are pooled")
    read("--reference", action="append", required=True, help="may be repeated")
    add("--filter", default="", metavar="NAMES", help="as in `tune`")
    read("--start", required=True, metavar="WEIGHTS", help="weights to start from")
    write("--output", required=True, metavar="DIR", help="folder to make")


def run(arguments: argparse.Namespace) -> None:
    """Make a folder in which Moses' tuners can tune a list."""
    from rerank.metrics.filters import Filters
    from rerank.moses.exchange import export
    from rerank.tuning.tuning_set import Lists

    export(Lists(arguments.nbest, arguments.reference, Filters(arguments.filter)), arguments.start, arguments.output)
