"""`moses-rerank tune`."""

import argparse

from rerank.commands.arguments import whole_number

HELP = "find the weights that make the best candidates win"
EXAMPLES = """\
  moses-rerank tune dev.scored.gz --reference dev.en --start moses.ini --tuner kbmira --output weights.ini

Features without a start weight begin at 0. BLEU is counted on the tokens as they are. What Moses has in its total
but does not print (UnknownWordPenalty) is left out of the score; it hardly differs within a sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("nbest", metavar="NBEST", help="scored n-best list of the tuning set; - is stdin")
    parser.add_argument("--reference", action="append", required=True, metavar="FILE", help="may be repeated")
    parser.add_argument(
        "--start", required=True, metavar="WEIGHTS", help="moses.ini, rescore.ini or a dense weight file to start from"
    )
    parser.add_argument("--tuner", default="kbmira", choices=("kbmira",), help="algorithm (default: kbmira)")
    parser.add_argument("--seed", type=whole_number, default=1, help="of the order of the sentences (default: 1)")
    parser.add_argument("--output", default="-", metavar="FILE", help="ini to write, readable by Moses' rescore.py")


def run(arguments: argparse.Namespace) -> int:
    """Tune."""
    from rerank.kbmira import KbmiraSettings
    from rerank.tuning import tune

    settings = KbmiraSettings(seed=arguments.seed)
    tune(arguments.nbest, arguments.reference, arguments.start, settings, arguments.output)
    return 0
