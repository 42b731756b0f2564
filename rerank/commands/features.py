"""`moses-rerank features`."""

import argparse

HELP = "list the features that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> int:
    """List."""
    from features.feature import FEATURES, VALUES
    from features.request import packaged, usage

    for name, row in (FEATURES | packaged()).items():
        print(f"{usage(name, row):<30}{row.description}")
    print("\nBehind a model's folder, in brackets, the values that it gives (neural:DIR[logprob,unknown]):")
    for name, description in VALUES.items():
        print(f"{name:<30}{description}")
    return 0
