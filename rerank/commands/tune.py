"""`moses-rerank tune`."""

import argparse

from moses_io.errors import InputError
from rerank.commands.arguments import whole_number

HELP = "find the weights that make the best candidates win"
EXAMPLES = """\
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --output weights.ini
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --tuner mert --metric bleu+chrf:0.7,0.3
  moses-rerank tune --features run1.features.dat --statistics run1.scores.dat --start run1.dense --parity moses

Features without a start weight begin at 0. BLEU is counted on the tokens as they are. What Moses has in its total
but does not print (UnknownWordPenalty) is left out of the score; it hardly differs within a sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("nbest", metavar="NBEST", nargs="?", help="scored n-best list of the tuning set; - is stdin")
    parser.add_argument("--reference", action="append", metavar="FILE", help="may be repeated")
    parser.add_argument("--features", metavar="FILE", help="features.dat of Moses' extractor, instead of a list")
    parser.add_argument("--statistics", metavar="FILE", help="its scores.dat, instead of references")
    parser.add_argument(
        "--start", required=True, metavar="WEIGHTS", help="moses.ini, rescore.ini or a dense weight file to start from"
    )
    parser.add_argument(
        "--tuner", default="kbmira", choices=("kbmira", "mert", "pro", "expected"), help="default: kbmira"
    )
    parser.add_argument(
        "--metric", default="bleu", metavar="METRIC", help="bleu, chrf, chrf++, ter, or a sum: bleu+chrf:0.7,0.3"
    )
    parser.add_argument("--seed", type=whole_number, help="of what is random in a tuner (default: 1)")
    parser.add_argument(
        "--runs", type=whole_number, default=1, metavar="N", help="tune from N seeds and keep the average"
    )
    parser.add_argument("--parity", default="", choices=("moses",), help="the weights of Moses' kbmira --no-shuffle")
    parser.add_argument(
        "--folds", type=whole_number, default=0, metavar="K", help="tell what new features gain on K folds, out of fold"
    )
    parser.add_argument("--fallback", action="store_true", help="keep the start weights if that gain is not there")
    parser.add_argument("--output", default="-", metavar="FILE", help="ini to write, readable by Moses' rescore.py")


def run(arguments: argparse.Namespace) -> int:
    """Tune."""
    from rerank.tuners.table import settle
    from rerank.tuning import Caution, tune, tune_extracted

    values = {name: getattr(arguments, name) for name in ("tuner", "metric", "runs", "parity")}
    tuning = settle(values | ({} if arguments.seed is None else {"seed": arguments.seed}))
    caution = Caution(arguments.folds, arguments.fallback)
    given = tuple(
        bool(part) for part in (arguments.nbest, arguments.reference, arguments.features, arguments.statistics)
    )
    if given == (True, True, False, False):
        tune(arguments.nbest, arguments.reference, arguments.start, tuning, arguments.output, caution)
    elif given == (False, False, True, True):
        tune_extracted(arguments.features, arguments.statistics, arguments.start, tuning, arguments.output, caution)
    else:
        raise InputError("expected a list and --reference, or --features and --statistics")
    return 0
