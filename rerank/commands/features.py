"""`moses-rerank features`."""

import argparse

HELP = "list the features that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> None:
    """List."""
    from features.foreign import packaged
    from features.kinds.score_files import LINES
    from features.models.tables import VALUES
    from features.request import usage
    from features.table import FEATURES

    for name, row in (FEATURES | packaged()).items():
        print(f"{usage(name, row):<30}{row.description}")
    print("\nBehind a model's folder, in brackets, the values that it gives (neural:DIR[logprob,unknown]):")
    for name, value in VALUES.items():
        print(f"{name:<30}{value.description}")
    print("\nForms of a file of scores, told by its first line (scores:FILE):")
    for name, line in LINES.items():
        print(f"{name:<30}{line}")
