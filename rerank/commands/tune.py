"""`moses-rerank tune`."""

import argparse

from moses_io.files.errors import InputError
from rerank.commands.arguments import (
    Container,
    add_filter,
    add_initial_weights,
    add_settings,
    declarers,
    read_settings,
    whole_number,
)

HELP = "tune the weights of a scored n-best list"
EXAMPLES = """\
  moses-rerank tune dev.scored.gz --reference dev.en --initial-weights moses.ini --output weights.ini
  moses-rerank tune dev.scored.gz --reference dev.en --initial-weights moses.ini --folds 5 --ablate --output weights.ini
  moses-rerank tune dev.scored.gz --reference dev.en --initial-weights moses.ini --tuner mert --metric bleu+chrf:0.7,0.3
  moses-rerank tune dev.gz --reference dev.en --initial-weights moses.ini --tuner auto \\
      --selection new.gz --selection-reference new.en
  moses-rerank tune run1.nbest.gz run2.nbest.gz --reference dev.en --initial-weights moses.ini --sign LM0:+ \\
      --freeze Distortion0
  moses-rerank tune --extractor-features run1.features.dat --extractor-scores run1.scores.dat \\
      --initial-weights run1.dense --parity moses

New features, which have no initial weight, start at 0. BLEU is computed on the tokens of the files, after the filters.
Moses' total includes features that Moses does not print, such as UnknownWordPenalty. They are ignored unless the list
has the feature of `score --feature rest:moses.ini`.

`--tuner mean` averages the weights of `kbmira`, of `expected` and, without sparse features, of `mert`, and interpolates
them with the initial weights. `--tuner auto` uses this mean, or an alternative that is significantly better in
cross-validation."""

SETTINGS = ("tuner", "metric", "runs", "parity", "seed", "ridge", "sign", "freeze")
"""Options that are settings of the tuning, in addition to `--set`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("nbest", metavar="NBEST", nargs="*", help="scored n-best list of the tuning set, several lists are pooled")
    read("--reference", action="append", help="reference translations, one per line, may be repeated")
    add_initial_weights(read)
    write(
        "--output", default="-", help="ini file with the tuned weights, readable by Moses' rescore.py (default: stdout)"
    )
    add(
        "--tuner",
        metavar="NAME",
        help="mean, auto, kbmira, mert, pro or expected (default: mean, or kbmira with --parity)",
    )
    add(
        "--metric",
        metavar="METRIC",
        help="bleu, bleu-shortest, bleu-average, chrf, chrf3, chrf++ or ter, or a weighted sum such as "
        "bleu+chrf:0.7,0.3 (default: bleu)",
    )
    add_filter(add)
    add("--seed", type=whole_number, metavar="N", help="random seed, not for --tuner expected (default: 1)")
    add(
        "--folds",
        type=whole_number,
        default=0,
        metavar="K",
        help="number of folds, to cross-validate the gain of new features (default: no cross-validation, 5 for auto)",
    )
    add(
        "--ablate",
        action="store_true",
        help="ablation: cross-validated score without each feature (default: 5 folds, or --folds)",
    )
    _add_tuner_settings(parser.add_argument_group("settings of the tuner"))
    _add_rare_options(parser.add_argument_group("rare options"))


def _add_tuner_settings(group: Container) -> None:
    add = group.add_argument
    add(
        "--runs",
        type=whole_number,
        metavar="N",
        help="number of runs with different seeds, whose weights are averaged (default: kbmira 5, pro 5, mert 20, "
        "others 1)",
    )
    add(
        "--ridge",
        type=float,
        metavar="X",
        help="strength of the L2 regularization toward the initial weights (kbmira, mert, expected) or toward 0 (pro), "
        "not for mean and auto (default: kbmira 0, mert 0, expected 0.0001, pro 1)",
    )
    add(
        "--sign",
        action="append",
        metavar="NAME:+|-",
        help="feature whose weight must not be negative (+) or positive (-), may be repeated",
    )
    add(
        "--freeze", action="append", metavar="NAME", help="dense feature that keeps its initial weight, may be repeated"
    )
    add_settings(group, "KEY=NUMBER", "further settings of the tuner, such as restarts=15 of mert")


def _add_rare_options(group: Container) -> None:
    add, read, _ = declarers(group)
    add(
        "--fallback",
        action="store_true",
        help="keep the initial weights if these, or weights tuned without the new features, score higher in "
        "cross-validation with p < 0.3, requires --folds, no effect for auto",
    )
    read(
        "--selection",
        metavar="NBEST",
        help="scored n-best list of other sentences on which auto compares tuners (default: cross-validation)",
    )
    read(
        "--selection-reference",
        action="append",
        default=[],
        help="reference of the list of --selection, may be repeated",
    )
    add("--parity", choices=("moses",), help="same weights as Moses' kbmira --no-shuffle")
    read("--extractor-features", help="features.dat of Moses' extractor, instead of an n-best list")
    read("--extractor-scores", help="scores.dat of Moses' extractor, instead of references")


def run(arguments: argparse.Namespace) -> None:
    """Tune the weights."""
    from moses_io.filters import Filters
    from rerank.tuning.tune import FoldSettings, make_tuning, tune
    from rerank.tuning.tuning_set import Extracted, Lists

    values = {name: vars(arguments)[name] for name in SETTINGS if vars(arguments)[name] is not None}
    values |= read_settings(arguments.set, "KEY=NUMBER")
    filters = Filters(arguments.filter)
    lists = (arguments.nbest, arguments.reference)
    extracted = (arguments.extractor_features, arguments.extractor_scores)
    if all(lists) and not any(extracted):
        source: Lists | Extracted = Lists(*lists, filters)
    elif all(extracted) and not any((*lists, arguments.filter)):
        source = Extracted(*extracted)
    else:
        raise InputError(
            "expected a list and --reference, or --extractor-features and --extractor-scores (without --filter)"
        )
    if bool(arguments.selection) != bool(arguments.selection_reference):
        raise InputError("expected --selection and --selection-reference together")
    other = Lists([arguments.selection], arguments.selection_reference, filters) if arguments.selection else None
    fold_settings = FoldSettings(folds=arguments.folds, fallback=arguments.fallback, ablate=arguments.ablate)
    tune(source, arguments.initial_weights, make_tuning(values), arguments.output, fold_settings, other)
