"""`moses-rerank features`."""

import argparse

HELP = "list the kinds of features, the values of neural:DIR[…] and the formats of score files"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> None:
    """Print the kinds of features, the values of models and the formats of score files."""
    from features.kinds.external import LINES
    from features.models.tables import ADDED, PER_WORD, VALUES
    from features.progress import show
    from features.request import usage
    from features.table import FEATURES, packaged

    others = {name: row for name, row in packaged().items() if name not in FEATURES}
    show(f"{usage(name, row):<30}{row.description}" for name, row in (FEATURES | others).items())
    show(
        ["", "Values of models, in brackets after the folder, such as neural:DIR[logprob,unknown] (default: logprob):"]
    )
    show(f"{name:<30}{value.description}" for name, value in VALUES.items())
    added = "logprob for candidates that the first of the merged lists (or the list Moses) lacks, 0 for others"
    per_word = "logprob divided by the number of words that the model predicts, including </s>"
    show([f"{PER_WORD:<30}{per_word}", f"{ADDED:<30}{added}"])
    show(["", "Formats of score files (scores:FILE), which are detected from the content:"])
    show(f"{name:<30}{line}" for name, line in LINES.items())
