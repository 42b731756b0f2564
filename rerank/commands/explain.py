"""`moses-rerank explain`."""

import argparse
from collections.abc import Sequence

from moses_io.files.errors import InputError
from rerank.commands.arguments import declarers, positive_number, whole_number

HELP = "say why one candidate of a sentence beats another, feature by feature"
EXAMPLES = """\
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --source test.de --reference test.en
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --candidate 12 --against 1

By default the candidate that the weights choose stands against Moses' choice: the one with the highest total, or with
--moses-output the one with that text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("nbest", metavar="NBEST", help="scored n-best list; - is stdin")
    read("--weights", required=True, help="weights from `tune`, or any [weight] ini")
    add("--sentence", required=True, type=whole_number, metavar="ID", help="id, from 0")
    add("--candidate", type=positive_number, default=0, metavar="N", help="its place in the list, from 1")
    add("--against", type=positive_number, default=0, metavar="N", help="another one")
    read("--source", help="show the source, too")
    read("--moses-output", help="Moses' own output, as after MBR or consensus decoding")
    read("--reference", action="append", default=[], help="and references")


def run(arguments: argparse.Namespace) -> None:
    """Print why one candidate of a sentence beats another."""
    from features.progress import show
    from moses_io.files.text import read_lines, read_sources
    from moses_io.nbest import read_moses_output
    from rerank.report.explanation import explain

    files = [("source", arguments.source, read_sources)] if arguments.source else []
    files += [("reference", path, read_lines) for path in arguments.reference]
    texts = [(name, _line(read(path), path, arguments.sentence)) for name, path, read in files]
    output = None
    if arguments.moses_output:
        lines = read_moses_output(arguments.moses_output, arguments.source or "", marks=True).lines
        output = _line(lines, arguments.moses_output, arguments.sentence)
    candidates = (arguments.candidate, arguments.against)
    show(explain(arguments.nbest, arguments.weights, arguments.sentence, candidates, output, texts))


def _line(lines: Sequence[str], path: str, sentence: int) -> str:
    """Return the line of a sentence. Raise `InputError`, with the path, if it does not exist."""
    if sentence >= len(lines):
        raise InputError(f"{path} has {len(lines)} lines, there is no sentence {sentence}")
    return lines[sentence]
