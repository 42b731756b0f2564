"""`moses-rerank explain`."""

import argparse
from collections.abc import Sequence

from moses_io.files.errors import InputError, counted
from moses_io.files.streams import name_of
from rerank.commands.arguments import add_moses_output, declarers, positive_number, whole_number

HELP = "compare two candidates of a sentence, feature by feature"
EXAMPLES = """\
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --source test.de --reference test.en
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --candidate 12 --against 1

The difference of two scores is the sum of weight * difference of values over all features. By default, the candidate
with the highest score is compared with Moses' choice, which is the candidate with the highest total or, with
--moses-output, the candidate whose text is Moses' output. If Moses' choice is the same candidate or not in the list,
the best other candidate is used instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("nbest", metavar="NBEST", help="scored n-best list (- for stdin)")
    read("--weights", required=True, help="output of `tune`, or another file of weights")
    add("--sentence", required=True, type=whole_number, metavar="ID", help="id of the sentence in the list, from 0")
    read("--source", help="source, shown above the candidates")
    read("--reference", action="append", default=[], help="references, shown above the candidates, may be repeated")
    add(
        "--candidate",
        type=positive_number,
        default=0,
        metavar="N",
        help="number of the candidate in the list of the sentence, from 1 (default: highest score)",
    )
    add(
        "--against",
        type=positive_number,
        default=0,
        metavar="N",
        help="number of the candidate to compare with, from 1 (default: Moses' choice)",
    )
    add_moses_output(read)


def run(arguments: argparse.Namespace) -> None:
    """Print why one candidate of a sentence beats another."""
    from features.progress import show
    from moses_io.files.text import read_lines, read_sources
    from moses_io.nbest import read_moses_output
    from rerank.report.explanation import explain

    files = [("source", arguments.source, read_sources)] if arguments.source else []
    files += [("reference", path, read_lines) for path in arguments.reference]
    contents = [(name, path, read(path)) for name, path, read in files]
    texts = [(name, _line(lines, path, arguments.sentence)) for name, path, lines in contents]
    output = None
    if arguments.moses_output:
        printed = read_moses_output(arguments.moses_output, marks=True)
        if arguments.source:
            printed.check(len(contents[0][2]), arguments.source)
        output = _line(printed.lines, arguments.moses_output, arguments.sentence)
    candidates = (arguments.candidate, arguments.against)
    show(explain(arguments.nbest, arguments.weights, arguments.sentence, candidates, output, texts))


def _line(lines: Sequence[str], path: str, sentence: int) -> str:
    """Return the line of a sentence. Raise `InputError`, with the path, if it does not exist."""
    if sentence >= len(lines):
        raise InputError(f"{name_of(path)} has {counted(len(lines), 'line')}, there is no sentence {sentence}")
    return lines[sentence]
