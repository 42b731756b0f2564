"""`moses-rerank features`."""

import argparse

HELP = "list the features that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> int:
    """List."""
    from features.feature import FEATURES, usage

    for name, kind in FEATURES.items():
        print(f"{usage(name):<20}{kind.description}")
    return 0
