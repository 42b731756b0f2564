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
    from features.progress import show

    lines = [f"{name:<27}{preset.description}" for name, preset in PRESETS.items()]
    for title, defaults in (("Architecture", Architecture()), ("Training", Training())):
        lines += ["", f"{title}: settings and defaults (for --set, or keys next to the preset in an experiment file):"]
        for name, value in asdict(defaults).items():
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            shown = text.lower() if isinstance(value, bool) else text
            lines.append(f"  {f'{name}={shown}':<26}{' | '.join(CHOICES.get(name, ()))}".rstrip())
    show(lines)
