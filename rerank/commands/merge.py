"""`moses-rerank merge`."""

import argparse
from collections.abc import Sequence

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.text import number
from moses_io.merge import LIST_NAME, LOWEST, MEAN
from rerank.commands.arguments import declarers

HELP = "join the n-best lists of several systems for the same sentences into one"
EXAMPLES = """\
  moses-rerank merge moses=dev.nbest.gz NMT=dev.beam.gz --output dev.merged.gz
  moses-rerank merge dev.nbest.gz other.nbest.gz third.nbest.gz --missing mean > dev.merged

Candidates of a sentence with the same words become one, with the features of all lists. For each list a feature
FromNAME is 1 for the candidates that it has and 0 for others; lists without a name are List1, List2 and so on by their
place. What Moses' features are of another system's candidate, only forced decoding by Moses could tell: --missing says
what stands for them, in each sentence anew. It is off by something, which the tuned weight of FromNAME takes up in the
mean. Features that can be reckoned from text, such as those of models, are better scored after the merge."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    read("lists", nargs="+", metavar="[NAME=]NBEST", help="n-best list, two at least; its name; - is stdin")
    add(
        "--missing",
        type=_missing,
        default=LOWEST,
        metavar="mean|lowest|NUMBER",
        help="value of a feature for candidates without it: of those of the sentence that have it the mean or the "
        "lowest one, or a number (default: lowest)",
    )
    write("--output", default="-", help="list to write; a name in .gz is packed")


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
    for place, text in enumerate(lists, start=1):
        name, named, path = text.partition("=")
        if not named or not LIST_NAME.fullmatch(name):
            name, path = f"List{place}", text
        if name in by_name:
            raise InputError(f"two lists have the name {name}")
        by_name[name] = path
    return by_name
