"""`moses-rerank presets`."""

import argparse

HELP = "list the models that can be named"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> int:
    """List."""
    from features.models.settings import PRESETS, changeable

    for name, preset in PRESETS.items():
        print(f"{name:<14}{preset.description}")
    print("\nSettings and their defaults (--set, or keys beside the preset in an experiment file):")
    print("  " + " ".join(f"{name}={value}" for name, value in changeable().items()))
    return 0
