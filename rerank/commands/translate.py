"""`moses-rerank translate`."""

import argparse

from moses_io.files.errors import InputError, shown
from rerank.commands.arguments import add_device, add_precision, declarers, positive_number

HELP = "translate with trained models, to text or to an n-best list"
EXAMPLES = """\
  moses-rerank translate models/forward --source test.de --output test.nmt
  moses-rerank translate models/forward --source dev.de --nbest 20 --output dev.nmt.gz
  moses-rerank translate models/many/* --source test.de --beam 5 --unknown lex.f2e --output test.nmt

Several models translate together, by the mean of their distributions; they must have one target vocabulary and order
of words. A list has log p of each translation, which `score` gives, too; `merge` puts it beside Moses' list."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("models", nargs="+", metavar="MODEL", help="folder that `train` made")
    read("--source", required=True, help="one tokenized sentence a line; - is stdin")
    add("--beam", type=positive_number, default=12, metavar="N", help="translations to keep open; 1 is greedy")
    add("--nbest", dest="best", type=positive_number, metavar="N", help="write a list of the N best of each sentence")
    add("--label", metavar="NAME", help="of the feature of that list (default: NMT)")
    add(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare translations by log p / tokens, or by log p (default: by log p / tokens)",
    )
    read(
        "--unknown",
        default="copy",
        metavar="copy|keep|FILE",
        help="what <unk> becomes: the source word with most attention, <unk>, or by Moses' lex.f2e what that word is "
        "translated as (default: copy)",
    )
    write("--output", default="-", help="text or list to write; a name in .gz is packed")
    add_device(parser)
    add_precision(parser)


def run(arguments: argparse.Namespace) -> None:
    """Translate a text."""
    from features.feature import Resources
    from features.models.decoding.search import Beam
    from features.models.decoding.translator import Replacement, Translator
    from features.request import check_label
    from rerank.systems.translations import write_translations

    best, label = arguments.best or 1, arguments.label
    if label and not arguments.best:
        raise InputError("--label names the feature of a list: it needs --nbest")
    if best > arguments.beam:
        raise InputError(f"--nbest {shown(best)}: expected at most the {arguments.beam} of --beam")
    if arguments.best:
        label = check_label(label or "NMT")
    beam = Beam(arguments.beam, best, arguments.normalize)
    resources = Resources(arguments.device, arguments.precision)
    translator = Translator(arguments.models, beam, Replacement(arguments.unknown), resources)
    write_translations(translator, arguments.source, arguments.output, label or "")
