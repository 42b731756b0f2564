"""`moses-rerank presets`."""

import argparse
from dataclasses import asdict

HELP = "list the presets of models, and the settings of models and training"
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none."""


def run(arguments: argparse.Namespace) -> None:
    """Print the presets and all settings with their defaults."""
    from features.models.presets import PRESETS
    from features.models.settings import CHOICES, Architecture, Training

    for name, preset in PRESETS.items():
        print(f"{name:<27}{preset.description}")
    for title, defaults in (("Architecture", Architecture()), ("Training", Training())):
        print(f"\n{title}: settings and defaults (for --set, or keys next to the preset in an experiment file):")
        for name, value in asdict(defaults).items():
            text = str(value).lower() if isinstance(value, bool) else ",".join(value) if value == () else value
            print(f"  {name + '=' + str(text):<26}{' | '.join(CHOICES.get(name, ()))}".rstrip())
