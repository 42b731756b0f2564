"""`moses-rerank translate`."""

import argparse
from typing import TYPE_CHECKING

from features.request import is_pretrained, parse_requests
from moses_io.files.errors import InputError, shown
from rerank.commands.arguments import add_device, add_precision, declarers, positive_number

if TYPE_CHECKING:
    from features.models.decoding.search import Beam
    from rerank.systems.translations import Translates

HELP = "translate with trained models, to text or to an n-best list"
EXAMPLES = """\
  moses-rerank translate models/forward --source test.de --output test.nmt
  moses-rerank translate models/forward --source dev.de --nbest 20 --output dev.nmt.gz
  moses-rerank translate models/many/* --source test.de --beam 5 --unknown lex.f2e --output test.nmt
  moses-rerank translate models/backward --backward --source news.en --beam 1 --output news.de
  moses-rerank translate hf:opus --source dev.de --like train.en --nbest 10 --output dev.opus.gz

Several models form an ensemble, which averages their distributions. They must have the same direction, the same
target vocabulary and the same order of words (left to right or right to left). The only feature of an n-best list is
the log-probability of each translation, the same value that `score` computes. `merge` combines the list with the list
of Moses. The translations of a pretrained model of transformers, hf:DIR as in features, get the tokenization and the
case of the text of --like."""

BEAM = 12
"""Default beam size."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("models", nargs="+", metavar="MODEL", help="model folder, written by `train`, or hf:DIR[LANG,LANG]")
    read("--source", required=True, help="source, one tokenized sentence per line (- for stdin)")
    write(
        "--output",
        default="-",
        help="translations or n-best list, compressed if named .gz, .bz2 or .xz (default: stdout)",
    )
    add(
        "--nbest",
        dest="nbest_size",
        type=positive_number,
        metavar="N",
        help="output of an n-best list with N candidates per sentence (default: 1-best translations as text)",
    )
    add(
        "--beam",
        type=positive_number,
        metavar="N",
        help="beam size, 1 is greedy search (default: 12, or N of --nbest if it is larger)",
    )
    add(
        "--backward",
        action="store_true",
        help="translate text of the target language to the source language, with backward models",
    )
    read("--like", help="tokenized text of the target language, for hf:DIR: translations get its tokenization and case")
    add_device(parser)
    add_precision(parser)
    add, read, _ = declarers(parser.add_argument_group("rare options"))
    read(
        "--unknown",
        metavar="copy|keep|FILE",
        help="replacement of <unk>: the source word with most attention (copy), <unk> itself (keep), or the best "
        "translation of this source word in Moses' lex.f2e, with --backward lex.e2f (FILE) (default: copy)",
    )
    add(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="ranking of translations by log-probability per token, or by total log-probability (default: per token)",
    )
    add("--label", metavar="NAME", help="name of the feature in the n-best list (default: NMT)")


def run(arguments: argparse.Namespace) -> None:
    """Translate a text."""
    from features.models.decoding.search import Beam
    from features.request import check_label
    from rerank.systems.translations import write_translations

    size, label = arguments.nbest_size or 1, arguments.label
    beam = arguments.beam or max(BEAM, size)
    if label and not arguments.nbest_size:
        raise InputError("--label names the feature of a list: it needs --nbest")
    if size > beam:
        raise InputError(f"--nbest {shown(size)}: expected at most the {beam} of --beam")
    if arguments.nbest_size:
        label = check_label(label or "NMT")
    translator = _translator(arguments, Beam(beam, size, arguments.normalize))
    write_translations(translator, arguments.source, arguments.output, label or "")


def _translator(arguments: argparse.Namespace, beam: "Beam") -> "Translates":
    """Return the translator of the models."""
    from features.feature import Resources
    from features.models.decoding.translator import Replacement, Translator

    resources = Resources(arguments.device, arguments.precision)
    pretrained = [text for text in arguments.models if is_pretrained(text)]
    if not pretrained:
        if arguments.like:
            raise InputError("--like is for hf:DIR: models of `train` translate into the tokens of their corpus")
        unknown = Replacement("copy" if arguments.unknown is None else arguments.unknown, arguments.backward)
        return Translator(arguments.models, beam, unknown, resources, arguments.backward)
    if len(arguments.models) > 1 or arguments.backward:
        other = "other models" if len(arguments.models) > 1 else "--backward"
        raise InputError(f"{pretrained[0]}: a pretrained model cannot be combined with {other}")
    if arguments.unknown is not None:
        raise InputError("--unknown is for models of `train`: a pretrained model has no <unk>")
    from features.kinds.pretrained import require_transformers

    require_transformers()
    from features.models.pretrained.form import with_form
    from features.models.pretrained.translator import PretrainedTranslator

    model = with_form(pretrained[0], arguments.like) if arguments.like else pretrained[0]
    return PretrainedTranslator(parse_requests([model])[0].argument, beam, resources)
