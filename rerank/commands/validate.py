"""`moses-rerank validate`."""

import argparse

from moses_io.files.errors import InputError
from moses_io.files.streams import STANDARD
from rerank.commands.arguments import declarers

HELP = "summarize an n-best list and report its errors with line numbers"
EXAMPLES = """\
  moses-rerank validate dev.nbest.gz --source dev.de --reference dev.en --weights moses.ini
  moses-rerank validate merged.nbest --regroup --output dev.nbest

The exit status is 2 if the list has errors, and 0 if it has only warnings. --regroup takes all lines with the same id
as one sentence. If a list was concatenated from parts whose ids start at 0, renumber them first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", help="n-best list, plain or compressed (- for stdin)")
    read("--source", help="source, to check ids, word alignments and segmentations")
    read("--reference", action="append", default=[], help="reference, to check ids and tokens, may be repeated")
    read("--weights", help="weights, to check that each feature has one weight per value")
    add("--regroup", action="store_true", help="output of the list sorted by id, instead of a report")
    write("--output", default="-", help="sorted list of --regroup (default: stdout)")


def run(arguments: argparse.Namespace) -> int:
    """Report the errors in a list, or write it with its ids in order. Return 2 if there are errors, otherwise 0."""
    from features.progress import log, progress_bar, show
    from moses_io.nbest import regroup
    from rerank.lists.validation import validate

    if arguments.output != STANDARD and not arguments.regroup:
        raise InputError("--output needs --regroup, because the report goes to stdout")
    if arguments.regroup:
        checks = {"--source": arguments.source, "--reference": arguments.reference, "--weights": arguments.weights}
        for option in (option for option, value in checks.items() if value):
            raise InputError(f"{option} is for the report, which --regroup does not make")
        with progress_bar("regroup", None):
            scattered = regroup(arguments.nbest, arguments.output)
        log.info(f"sentences whose lines were not adjacent: {scattered}")
        return 0
    with progress_bar("validate", None):
        findings = validate(arguments.nbest, arguments.source, arguments.reference, arguments.weights)
    lines = [*findings.summary(), *(f"error: {error}" for error in findings.errors)]
    lines += [f"warning: {warning}" for warning in findings.warnings]
    show([*lines, f"errors: {len(findings.errors)}, warnings: {len(findings.warnings)}"])
    return 2 if findings.errors else 0
