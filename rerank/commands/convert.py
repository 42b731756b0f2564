"""`moses-rerank convert`."""

import argparse

from moses_io.decoders.formats import FORMATS
from rerank.commands.arguments import declarers

HELP = "convert the n-best list of another decoder to a Moses list"
EXAMPLES = """\
  moses-rerank convert dev.marian --output dev.nbest.gz --weights weights.ini
  moses-rerank convert test.marian --output test.nbest.gz --like dev.nbest.gz
  moses-rerank convert dev.ct2 --source dev.de --output dev.nbest.gz

The decoder's own score is the feature Score and the total of each candidate. --weights writes initial weights for `run`
and `tune`: 1 for Score, 0 for other features. The text stays as it is, so it must be tokenized like the references."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("list", metavar="LIST", help="n-best list of another decoder")
    write("--output", required=True, metavar="NBEST", help="Moses list, compressed if named .gz, .bz2 or .xz")
    add("--format", choices=sorted(FORMATS), default="", help="format of the list (default: by its first lines)")
    read(
        "--source",
        default="",
        help="source text, needed for formats without sentence ids, in which all sentences have equally many lines",
    )
    read(
        "--like",
        default="",
        metavar="NBEST",
        help="a list that was converted before, whose features the new list has (default: its own features)",
    )
    write("--weights", default="", metavar="FILE", help="additional output: initial weights")


def run(arguments: argparse.Namespace) -> None:
    """Convert the list."""
    from features.progress import log
    from moses_io.decoders.convert import convert
    from moses_io.files.errors import counted

    done = convert(
        arguments.list, arguments.output, arguments.format, arguments.source, arguments.weights, arguments.like
    )
    sizes = f"{counted(done.sentences, 'sentence')}, {counted(done.candidates, 'candidate')}"
    log.info(f"{done.form}: {sizes}, features {', '.join(done.labels)}")
    if done.left_out:
        reason = "that the other list does not have" if arguments.like else "that most candidates do not have"
        log.warning(f"{done.left_out:,} features {reason} are left out")
