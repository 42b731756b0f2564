"""`moses-rerank explain`."""

import argparse

from rerank.commands.arguments import positive_number, whole_number

HELP = "say why one candidate of a sentence beats another, feature by feature"
EXAMPLES = """\
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --source test.de --reference test.en
  moses-rerank explain test.scored.gz --weights weights.ini --sentence 105 --candidate 12 --against 1

By default the candidate that the weights choose stands against the one with the highest total."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("nbest", metavar="NBEST", help="scored n-best list; - is stdin")
    parser.add_argument("--weights", required=True, metavar="FILE", help="weights from `tune`, or any [weight] ini")
    parser.add_argument("--sentence", required=True, type=whole_number, metavar="ID", help="id, from 0")
    parser.add_argument(
        "--candidate", type=positive_number, default=0, metavar="N", help="its place in the list, from 1"
    )
    parser.add_argument("--against", type=positive_number, default=0, metavar="N", help="another one")
    parser.add_argument("--source", metavar="FILE", help="show the source, too")
    parser.add_argument("--reference", action="append", default=[], metavar="FILE", help="and references")


def run(arguments: argparse.Namespace) -> None:
    """Explain."""
    from features.progress import show
    from moses_io.errors import InputError
    from moses_io.text import read_lines, read_sources
    from rerank.report.explanation import Question, explain

    files = [("source", arguments.source, read_sources)] if arguments.source else []
    files += [("reference", path, read_lines) for path in arguments.reference]
    texts = []
    for name, path, read in files:
        lines = read(path)
        if arguments.sentence >= len(lines):
            raise InputError(f"{path} has {len(lines)} lines, there is no sentence {arguments.sentence}")
        texts.append((name, lines[arguments.sentence]))
    question = Question(sentence=arguments.sentence, chosen=arguments.candidate, against=arguments.against)
    show(explain(arguments.nbest, arguments.weights, question, texts))
