"""`moses-rerank features`."""

import argparse

HELP = "list the features that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> None:
    """List."""
    from features.models.tables import VALUES
    from features.progress import show
    from features.request import packaged, usage
    from features.table import FEATURES

    show(f"{usage(name, row):<30}{row.description}" for name, row in (FEATURES | packaged()).items())
    show(["", "Behind a model's folder, in brackets, the values that it gives (neural:DIR[logprob,unknown]):"])
    show(f"{name:<30}{value.description}" for name, value in VALUES.items())
