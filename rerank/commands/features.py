"""`moses-rerank features`."""

import argparse

HELP = "list the features that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> None:
    """Print the kinds of features, the values of models and the formats of score files."""
    from features.kinds.external import LINES
    from features.models.tables import ADDED, VALUES
    from features.progress import show
    from features.request import usage
    from features.table import FEATURES, packaged

    show(f"{usage(name, row):<30}{row.description}" for name, row in (FEATURES | packaged()).items())
    show(["", "Behind a model's folder, in brackets, the values that it gives (neural:DIR[logprob,unknown]):"])
    show(f"{name:<30}{value.description}" for name, value in VALUES.items())
    show([f"{ADDED:<30}logprob of candidates that the first of joined lists lacks, 0 of others"])
    show(["", "Forms of a file of scores, told by its first line (scores:FILE):"])
    show(f"{name:<30}{line}" for name, line in LINES.items())
