"""`moses-rerank evaluate`."""

import argparse
import json

from moses_io.filters import FILTERS
from rerank.commands.arguments import declarers

HELP = "evaluate translations by BLEU, chrF and TER, with significance tests"
_FILTERS = "\n".join(f"* {name}: {description}" for name, (_, description) in FILTERS.items())
EXAMPLES = f"""\
  moses-rerank evaluate --reference test.en test.moses test.out --nbest test.nbest.gz
  moses-rerank evaluate --reference test.raw.en --filter debpe,deescape,detruecase,detokenize:en --tokenize 13a test.out

p-values are two-sided, from paired randomization tests against the first system. Filters are applied to systems,
references and n-best list, in the given order:

{_FILTERS}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("systems", nargs="+", metavar="SYSTEM", help="translations, one per line, the first system is the baseline")
    read("--reference", action="append", required=True, help="reference translations, one per line, may be repeated")
    read(
        "--nbest", metavar="NBEST", help="n-best list, for oracle scores and the ranks of the translations in the list"
    )
    add(
        "--filter",
        default="",
        metavar="NAMES",
        help=f"filters, separated by commas: {', '.join(FILTERS)} (default: none)",
    )
    add(
        "--tokenize",
        default="none",
        metavar="NAME",
        help="tokenizer of sacreBLEU for BLEU (default: none, the tokens of the files split at spaces)",
    )
    add("--json", action="store_true", help="output as JSON instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate systems, and print a table or JSON."""
    from features.progress import show
    from moses_io.files.errors import InputError
    from moses_io.filters import Filters
    from rerank.report.listed import evaluate_files
    from rerank.report.tables import table

    systems = {path: path for path in arguments.systems}
    if len(systems) != len(arguments.systems):
        twice = next(path for path in systems if arguments.systems.count(path) > 1)
        raise InputError(f"{twice} is named twice")
    filters = Filters(arguments.filter)
    evaluation = evaluate_files(systems, arguments.reference, arguments.nbest, filters, arguments.tokenize)
    show(json.dumps(evaluation.as_json(), indent=2).split("\n") if arguments.json else table(evaluation))
