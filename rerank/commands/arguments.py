"""Arguments that several commands share."""

import argparse


def whole_number(text: str) -> int:
    """Convert an argument that must be a whole number from 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return int(text)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare --device."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: a GPU if there is one"
    )
