"""`moses-rerank align`."""

import argparse

from moses_io.symmetrize import SYMMETRIZATIONS
from rerank.commands.arguments import add_device, declarers

HELP = "link the words of sentence pairs by the attention of models"
EXAMPLES = """\
  moses-rerank align models/forward --source test.de --target test.en --output test.links
  moses-rerank align models/forward models/backward --source test.de --target test.out --soft test.npz > test.links
  moses-rerank align models/many/* --source gold.de --target gold.en --gold gold.links --output links

A target may be what `rerank` wrote. Links are SOURCE-TARGET, words from 0, as in Moses' aligned.grow-diag-final-and.
A word whose attention is highest on a sentinel has no link. Models of one direction are averaged; a forward and a
backward model are joined as Moses' symal does. A gold alignment has a line a sentence, `3-4` for a sure and `3p4` or
`3?4` for a possible link (or `3-4:S` and `3-4:P`), or a line a link, `SENTENCE SOURCE TARGET S|P` from 1, as in NAACL
2003 (there the columns are those of L1 and L2: here L1 must be the source)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("models", metavar="MODEL", nargs="+", help="model folder, forward or backward, of either order of words")
    read("--source", required=True, help="source, one tokenized sentence a line; - is stdin")
    read("--target", required=True, help="its translation, line by line")
    add(
        "--symmetrize",
        choices=tuple(SYMMETRIZATIONS),
        help="how links of forward and backward models are joined (default: grow-diag-final-and)",
    )
    write("--soft", help="also write the attention of target words on source words, .npz or .json[.gz]")
    read("--gold", help="measure the links against these: alignment error rate, precision, recall")
    add("--gold-base", type=int, default=0, choices=(0, 1), help="number of the first word of its lines (default: 0)")
    write("--output", default="-", help="links to write, a line a sentence pair")
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Align the words of sentence pairs, and write the links."""
    from features.models.alignment import Aligner
    from moses_io.gold import read_gold
    from rerank.systems.align import align
    from rerank.systems.attention import soft_form

    if arguments.soft:
        soft_form(arguments.soft)
    gold = read_gold(arguments.gold, arguments.gold_base) if arguments.gold else None
    aligner = Aligner(arguments.models, arguments.device, arguments.symmetrize)
    align(aligner, arguments.source, arguments.target, arguments.output, arguments.soft, gold)
