"""`moses-rerank tune`."""

import argparse

from moses_io.files.errors import InputError
from rerank.commands.arguments import add_settings, declarers, read_settings, whole_number

HELP = "find the weights that make the best candidates win"
EXAMPLES = """\
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --output weights.ini
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --folds 5 --ablate --output weights.ini
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --tuner mert --metric bleu+chrf:0.7,0.3
  moses-rerank tune dev.gz --reference dev.en --start moses.ini --tuner auto --choose new.gz --choose-reference new.en
  moses-rerank tune run1.nbest.gz run2.nbest.gz --reference dev.en --start moses.ini --sign LM0:+ --freeze Distortion0
  moses-rerank tune --features run1.features.dat --statistics run1.scores.dat --start run1.dense --parity moses

Features without a start weight begin at 0. BLEU is counted on the tokens as they are, after --filter. What Moses has
in its total but does not print (UnknownWordPenalty) is left out of the score, unless the feature `rest` put it in."""

SETTINGS = ("tuner", "metric", "runs", "parity", "seed", "ridge", "sign", "freeze")
"""Options that are settings of the tuning, in addition to `--set`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", nargs="*", help="scored n-best list of the tuning set; several are pooled")
    read("--reference", action="append", help="may be repeated")
    read("--features", help="features.dat of Moses' extractor, instead of a list")
    read("--statistics", help="its scores.dat, instead of references")
    read("--start", required=True, metavar="WEIGHTS", help="moses.ini, rescore.ini, dense weights or init.opt")
    read("--choose", metavar="NBEST", help="scored list for --tuner auto to choose on, instead of folds")
    read("--choose-reference", action="append", default=[], help="its reference; may be repeated")
    add("--tuner", metavar="NAME", help="mean, auto, kbmira, mert, pro or expected (default: mean)")
    add("--metric", metavar="METRIC", help="bleu[-shortest, -average], chrf, chrf3, chrf++, ter; bleu+chrf:0.7,0.3")
    add("--filter", default="", metavar="NAMES", help="before the metric, such as debpe,detokenize; see `evaluate`")
    add("--seed", type=whole_number, help="of what is random in a tuner (default: 1)")
    add(
        "--runs", type=whole_number, metavar="N", help="keep the average of N runs (default: 1; kbmira, pro 5, mert 20)"
    )
    add("--ridge", type=float, metavar="X", help="hold weights near the start (not mean and auto); pro: near 0")
    add_settings(parser, "KEY=NUMBER", "settings of the tuner: restarts=15")
    add("--sign", action="append", metavar="NAME:+|-", help="no weight below (+) or above (-) 0; may be repeated")
    add("--freeze", action="append", metavar="NAME", help="keep the start weight of a feature; may be repeated")
    add("--parity", choices=("moses",), help="the weights of Moses' kbmira --no-shuffle")
    add("--folds", type=whole_number, default=0, metavar="K", help="tell what new features gain on K folds (auto: 5)")
    add("--ablate", action="store_true", help="tell what is lost without each feature, on folds")
    add("--fallback", action="store_true", help="keep the start weights where new features gain nothing (not auto)")
    write("--output", default="-", help="ini to write, readable by Moses' rescore.py")


def run(arguments: argparse.Namespace) -> None:
    """Tune the weights."""
    from rerank.metrics.filters import Filters
    from rerank.tuning.tune import Caution, settle, tune
    from rerank.tuning.tuning_set import Extracted, Lists

    values = {name: vars(arguments)[name] for name in SETTINGS if vars(arguments)[name] is not None}
    values |= read_settings(arguments.set, "KEY=NUMBER")
    listed, extracted = (arguments.nbest, arguments.reference), (arguments.features, arguments.statistics)
    if all(listed) and not any(extracted):
        source: Lists | Extracted = Lists(arguments.nbest, arguments.reference, Filters(arguments.filter))
    elif all(extracted) and not any((*listed, arguments.filter)):
        source = Extracted(arguments.features, arguments.statistics)
    else:
        raise InputError("expected a list and --reference, or --features and --statistics (without --filter)")
    if bool(arguments.choose) != bool(arguments.choose_reference):
        raise InputError("expected --choose and --choose-reference together")
    filters = Filters(arguments.filter)
    other = Lists([arguments.choose], arguments.choose_reference, filters) if arguments.choose else None
    caution = Caution(folds=arguments.folds, fallback=arguments.fallback, ablate=arguments.ablate)
    tune(source, arguments.start, settle(values), arguments.output, caution, other)
