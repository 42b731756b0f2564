"""`moses-rerank evaluate`."""

import argparse
import json

from rerank.commands.arguments import declarers
from rerank.metrics.filters import FILTERS

HELP = "measure translations: BLEU, chrF, TER and whether they differ by more than chance"
EXAMPLES = """\
  moses-rerank evaluate --reference test.en test.moses test.out --nbest test.nbest.gz
  moses-rerank evaluate --reference test.raw.en --filter debpe,deescape,detruecase,detokenize:en --tokenize 13a test.out

p-values are of paired randomization tests against the first system, in either direction. Filters are applied to
systems, references and list, in the order in which they are named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("systems", nargs="+", metavar="SYSTEM", help="translations, one a line; the first is compared with")
    read("--reference", action="append", required=True, help="may be repeated")
    read(
        "--nbest",
        metavar="NBEST",
        help="also measure the best candidates of this list, and tell the systems' place in it",
    )
    add("--filter", default="", metavar="NAMES", help=f"first do {','.join(FILTERS)}")
    add("--tokenize", default="none", metavar="NAME", help="sacreBLEU's tokenizer for BLEU (default: Moses' tokens)")
    add("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate systems, and print a table or JSON."""
    from features.progress import show
    from moses_io.files.errors import InputError
    from rerank.metrics.filters import Filters
    from rerank.report.listed import evaluate_files
    from rerank.report.tables import table

    systems = {path: path for path in arguments.systems}
    if len(systems) != len(arguments.systems):
        raise InputError("a system is named twice")
    filters = Filters(arguments.filter)
    evaluation = evaluate_files(systems, arguments.reference, arguments.nbest, filters, arguments.tokenize)
    show(json.dumps(evaluation.as_json(), indent=2).split("\n") if arguments.json else table(evaluation))
