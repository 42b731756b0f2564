"""`moses-rerank align`."""

import argparse

from moses_io.files.errors import InputError
from moses_io.symmetrize import SYMMETRIZATIONS
from rerank.commands.arguments import add_device, declarers

HELP = "align the words of sentence pairs by the attention of trained models"
EXAMPLES = """\
  moses-rerank align models/forward --source test.de --target test.en --output test.links
  moses-rerank align models/forward models/backward --source test.de --target test.out --soft test.npz > test.links
  moses-rerank align models/many/* --source gold.de --target gold.en --gold gold.links --output links

The target may be a reference or a translation, such as the output of `rerank`. Links are written as SOURCE-TARGET,
indices of words from 0, as in Moses' aligned.grow-diag-final-and. A word has no link if its attention is highest on
<s> or </s>. The attention of models of one direction is averaged. The links of both directions are symmetrized as in
Moses' symal.

A gold alignment has one of two formats:

* One line per sentence: `3-4` or `3-4:S` for a sure link, `3p4`, `3?4` or `3-4:P` for a possible link.
* One line per link, as in the shared task of NAACL 2003: `SENTENCE SOURCE TARGET S|P`, numbers from 1. For the files of
  this task, --source must be the language L1 and --target L2.

The alignment error rate is printed on stdout, or on stderr if the links go to stdout."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("models", metavar="MODEL", nargs="+", help="model folder, forward or backward, left-to-right or right-to-left")
    read("--source", required=True, help="source, one tokenized sentence per line (- for stdin)")
    read("--target", required=True, help="translation, line by line")
    write("--output", default="-", help="links, one line per sentence pair (default: stdout)")
    add(
        "--symmetrize",
        choices=tuple(SYMMETRIZATIONS),
        help="heuristic that combines the links of forward and backward models (default: grow-diag-final-and)",
    )
    write("--soft", help="additional output: attention of target words on source words, .npz, .json or .json.gz")
    read("--gold", help="gold alignment, for alignment error rate, precision and recall")
    add(
        "--gold-base",
        type=int,
        choices=(0, 1),
        help="index of the first word in a gold alignment with one line per sentence (default: 0)",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Align the words of sentence pairs, and write the links."""
    from features.models.alignment import Aligner
    from moses_io.gold import read_gold
    from rerank.systems.align import align
    from rerank.systems.attention import soft_format

    if arguments.soft:
        soft_format(arguments.soft)  # only for its errors
    if arguments.gold_base is not None and not arguments.gold:
        raise InputError("--gold-base is for the file of --gold")
    gold = read_gold(arguments.gold, arguments.gold_base or 0) if arguments.gold else None
    aligner = Aligner(arguments.models, arguments.device, arguments.symmetrize)
    align(aligner, arguments.source, arguments.target, arguments.output, arguments.soft, gold)
