"""`moses-rerank merge`."""

import argparse
from collections.abc import Sequence

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.text import number
from moses_io.merge import LIST_NAME, LOWEST, MEAN
from rerank.commands.arguments import declarers

HELP = "merge the n-best lists of several systems for the same sentences"
EXAMPLES = """\
  moses-rerank merge Moses=dev.nbest.gz NMT=dev.beam.gz --output dev.merged.gz
  moses-rerank merge dev.nbest.gz other.nbest.gz third.nbest.gz --missing mean > dev.merged

Equal candidates of different lists are merged into one, with the features of all these lists. For each list, a feature
FromNAME is 1 for the candidates of this list and 0 for other candidates. The default names are List1, List2, and so on.

Only forced decoding could compute Moses' features for candidates of another system. Instead, --missing gives these
candidates one value per feature. The tuned weight of FromNAME compensates for the average error of this value. Features
that need only the text, such as those of models, should be scored after the merge."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("lists", nargs="+", metavar="[NAME=]NBEST", help="at least two n-best lists with optional names (- for stdin)")
    write("--output", default="-", help="merged list, compressed if named .gz, .bz2 or .xz (default: stdout)")
    add(
        "--missing",
        type=_missing,
        default=LOWEST,
        metavar="mean|lowest|NUMBER",
        help="value of a feature for candidates without it: mean or lowest value among the other candidates of the "
        "sentence (of all sentences if none has it), or a number (default: lowest)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Merge the lists."""
    from features.progress import log, progress_bar
    from moses_io.merge import describe_origins, merge_lists

    lists = _by_name(arguments.lists)
    with progress_bar("merge", None):
        sentences, origins = merge_lists(lists, arguments.output, arguments.missing)
    sizes = counted(sentences, "sentence"), counted(origins.total(), "candidate")
    log.info(f"{', '.join(sizes)}: {describe_origins(list(lists), origins)}")


def _missing(text: str) -> str | float:
    if text in (MEAN, LOWEST):
        return text
    value = number(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"expected mean, lowest or a number, found {shown(text)}")
    return value


def _by_name(lists: Sequence[str]) -> dict[str, str]:
    """Return the path of each list by its name. The N-th list is `ListN` if it has no name."""
    by_name: dict[str, str] = {}
    for index, text in enumerate(lists, start=1):
        name, named, path = text.partition("=")
        if not named or not LIST_NAME.fullmatch(name):
            name, path = f"List{index}", text
        if name in by_name:
            raise InputError(f"two lists have the name {name}")
        by_name[name] = path
    return by_name
