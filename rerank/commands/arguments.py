"""Arguments that several commands share."""

import argparse


def whole_number(text: str) -> int:
    """Convert an argument that must be a whole number from 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return int(text)


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Declare what features may use."""
    add_device(parser)
    parser.add_argument(
        "--precision", default="fp32", choices=("fp32", "bf16"), help="of models; bf16 is faster (default: fp32)"
    )
    parser.add_argument("--cache", default="", metavar="DIR", help="keep scores of models there, and look them up")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare --device."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: a GPU if there is one"
    )
