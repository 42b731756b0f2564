"""Arguments that several commands share."""

import argparse


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare --device."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: a GPU if there is one"
    )
