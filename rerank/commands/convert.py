"""`moses-rerank convert`."""

import argparse
import re

from moses_io.decoders.convert import SCORE
from moses_io.decoders.formats import FORMATS
from moses_io.files.errors import shown
from rerank.commands.arguments import declarers

HELP = "convert the n-best list of another decoder to a Moses list"
EXAMPLES = """\
  moses-rerank convert dev.marian --output dev.nbest.gz --weights weights.ini
  moses-rerank convert test.marian --output test.nbest.gz --like dev.nbest.gz
  moses-rerank convert dev.ct2 --source dev.de --output dev.nbest.gz

The decoder's own score is the feature Score and the total of each candidate. --weights writes initial weights for `run`
and `tune`: 1 for Score, 0 for other features. Without --filter the text stays as it is. It should be tokenized like
the references."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("list", metavar="LIST", help="n-best list of another decoder")
    write("--output", required=True, metavar="NBEST", help="Moses list, compressed if named .gz, .bz2 or .xz")
    add("--format", choices=sorted(FORMATS), default="", help="format of the list (default: by its first lines)")
    read(
        "--source",
        default="",
        help="source text, needed for formats without sentence ids, in which all sentences have the same number of "
        "lines",
    )
    read(
        "--like",
        default="",
        metavar="NBEST",
        help="a list that was converted before, whose features the new list has (default: its own features)",
    )
    add(
        "--filter",
        default="",
        metavar="NAMES",
        help="filters for the texts, such as debpe or desentencepiece, see `evaluate --help` (default: none)",
    )
    add(
        "--label",
        type=_label,
        default=SCORE,
        help="label of the decoder's own score. Any other label than the default is also the prefix of the labels of "
        "other features, so that lists of several decoders can be merged (default: %(default)s)",
    )
    write("--weights", default="", metavar="FILE", help="additional output: initial weights")


def run(arguments: argparse.Namespace) -> None:
    """Convert the list."""
    from features.progress import log
    from moses_io.decoders.convert import convert
    from moses_io.files.errors import counted

    done = convert(
        arguments.list, arguments.output, arguments.format, arguments.source, arguments.filter, arguments.label,
        arguments.like, arguments.weights,
    )  # fmt: skip
    sizes = f"{counted(done.sentences, 'sentence')}, {counted(done.candidates, 'candidate')}"
    log.info(f"{done.format_name}: {sizes}, features {', '.join(done.labels)}")
    if done.left_out:
        reason = f"not in {arguments.like}" if arguments.like else "most candidates do not have them"
        log.warning(f"left out: {counted(done.left_out, 'feature')} ({reason})")
    if done.absent:
        log.warning(f"no candidate has {', '.join(done.absent)}, which {arguments.like} has. The values are 0")


def _label(text: str) -> str:
    if not re.fullmatch("[A-Za-z][A-Za-z0-9]*", text):
        raise argparse.ArgumentTypeError(f"expected letters and digits, beginning with a letter, found {shown(text)}")
    return text
