"""`moses-rerank validate`."""

import argparse

HELP = "say what is in an n-best list, and every fault with its line"
EXAMPLES = """\
  moses-rerank validate dev.nbest.gz --source dev.de --reference dev.en --weights moses.ini
  cat part1.nbest part2.nbest | moses-rerank validate - --regroup --output all.nbest

Exit status 2 if there is a fault; warnings do not count."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("nbest", metavar="NBEST", help="n-best list, plain or gzip; - is stdin")
    parser.add_argument("--source", metavar="FILE", help="source: no id may be beyond it")
    parser.add_argument(
        "--reference", action="append", default=[], metavar="FILE", help="reference: likewise; may be repeated"
    )
    parser.add_argument("--weights", metavar="FILE", help="weights: each feature must have as many as values")
    parser.add_argument("--regroup", action="store_true", help="write the list with ids in order instead")
    parser.add_argument("--output", default="-", metavar="FILE", help="list that --regroup writes")


def run(arguments: argparse.Namespace) -> int:
    """Validate or regroup."""
    from rerank.validation import regroup, validate

    if arguments.regroup:
        regroup(arguments.nbest, arguments.output)
        return 0
    found = validate(arguments.nbest, arguments.source, arguments.reference, arguments.weights)
    lines = [*found.summary(), *(f"fault: {fault}" for fault in found.faults)]
    print("\n".join([*lines, *(f"warning: {warning}" for warning in found.warnings)]))
    print(f"{len(found.faults)} faults, {len(found.warnings)} warnings")
    return 2 if found.faults else 0
