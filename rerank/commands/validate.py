"""`moses-rerank validate`."""

import argparse

from moses_io.files.errors import InputError
from moses_io.files.streams import STANDARD
from rerank.commands.arguments import declarers

HELP = "say what is in an n-best list, and every fault with its line"
EXAMPLES = """\
  moses-rerank validate dev.nbest.gz --source dev.de --reference dev.en --weights moses.ini
  moses-rerank validate merged.nbest --regroup --output dev.nbest

Exit status 2 if there is a fault; warnings do not count. --regroup takes lines of one id for one sentence: shards that
each count from 0 must be renumbered first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", help="n-best list, plain or gzip; - is stdin")
    read("--source", help="source: no id may be beyond it")
    read("--reference", action="append", default=[], help="reference: likewise; may be repeated")
    read("--weights", help="weights: each feature must have as many as values")
    add("--regroup", action="store_true", help="write the list with ids in order instead")
    write("--output", default="-", help="list that --regroup writes")


def run(arguments: argparse.Namespace) -> int:
    """Report the faults of a list, or write it with its ids in order. Return 2 if there are faults, otherwise 0."""
    from features.progress import log, progress_bar, show
    from moses_io.nbest import regroup
    from rerank.lists.validation import validate

    if arguments.output != STANDARD and not arguments.regroup:
        raise InputError("--output needs --regroup, whose list it is; the report goes to stdout")
    if arguments.regroup:
        with progress_bar("regroup", None):
            scattered = regroup(arguments.nbest, arguments.output)
        log.info(f"sentences whose lines did not stand together: {scattered}")
        return 0
    with progress_bar("validate", None):
        findings = validate(arguments.nbest, arguments.source, arguments.reference, arguments.weights)
    lines = [*findings.summary(), *(f"fault: {fault}" for fault in findings.faults)]
    lines += [f"warning: {warning}" for warning in findings.warnings]
    show([*lines, f"faults: {len(findings.faults)}, warnings: {len(findings.warnings)}"])
    return 2 if findings.faults else 0
