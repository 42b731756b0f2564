"""`moses-rerank ems`."""

import argparse

HELP = "add steps for reranking to the experiment.meta of Moses' EMS"
EXAMPLES = """\
  moses-rerank ems ~/mosesdecoder/scripts/ems/experiment.meta --output experiment.meta
  experiment.perl -meta experiment.meta -config config -exec

In the configuration a section [RERANKING] and a line of [EVALUATION] switch them on; docs/moses.md shows both."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("meta", metavar="META", help="experiment.meta of Moses, or your own")
    parser.add_argument("--output", default="-", metavar="FILE", help="copy to write, with the steps")


def run(arguments: argparse.Namespace) -> None:
    """Add the steps."""
    from rerank.moses.ems import add_steps

    add_steps(arguments.meta, arguments.output)
