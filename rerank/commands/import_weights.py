"""`moses-rerank import-weights`."""

import argparse

from rerank.commands.arguments import declarers

HELP = "convert the output of Moses' kbmira, mert or pro for a folder of `export` to an ini file"
EXAMPLES = """\
  moses-rerank import-weights tuning tuning/kbmira.out --output weights.ini
  moses-rerank import-weights tuning tuning/weights.txt --output weights.ini     # mert"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    read("folder", metavar="DIR", help="folder written by `export`")
    read("result", help="output of kbmira or megam (for pro), or weights.txt or log of mert")
    write("--output", default="-", help="ini file with the weights (default: stdout)")


def run(arguments: argparse.Namespace) -> None:
    """Convert the result of Moses' tuners to an ini file."""
    from rerank.moses.exchange import import_weights

    import_weights(arguments.folder, arguments.result, arguments.output)
