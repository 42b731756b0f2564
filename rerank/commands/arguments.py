"""Arguments that several commands share."""

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moses_io.errors import QUOTED, InputError, shown
from moses_io.text import number, whole

if TYPE_CHECKING:
    from features.feature import Resources


def whole_number(text: str) -> int:
    """Convert an argument that must be a whole number from 0."""
    value = whole(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {shown(text)}")
    return value


def positive_number(text: str) -> int:
    """Convert an argument that must be a whole number from 1."""
    value = whole_number(text)
    if not value:
        raise argparse.ArgumentTypeError("expected a whole number from 1, found '0'")
    return value


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Declare what stands in gaps, and what else is written beside the choices."""
    parser.add_argument(
        "--on-missing",
        default="error",
        metavar="blank|FILE",
        help="line for a sentence without candidates: an empty one, or the same line of FILE (default: an error)",
    )
    parser.add_argument(
        "--nbest-size", type=positive_number, default=0, metavar="N", help="the N best of the list of --nbest alone"
    )
    parser.add_argument(
        "--confidence",
        metavar="FILE",
        help="also write, a line a sentence, the score expected of it, 0 to 100, a tab, and the probability that the "
        "change from Moses' choice helped, empty where there is none",
    )
    parser.add_argument("--keep-unless", help=argparse.SUPPRESS)  # removed, see `read_outputs`
    parser.add_argument(
        "--moses-output",
        default="",
        metavar="FILE",
        help="Moses' own output, one line a source sentence, needed after MBR or consensus decoding (default: the "
        "candidates with the highest totals)",
    )


def read_outputs(arguments: argparse.Namespace) -> Any:
    """Return the `Outputs` of a command that has `--output`, `--nbest` and `add_choices`.

    Raises:
        InputError: arguments that do not go together.
    """
    from rerank.linear.selection import Outputs

    if arguments.nbest_size and not arguments.reranked:
        raise InputError("--nbest-size needs --nbest, the list that it cuts")
    if arguments.keep_unless is not None:
        instead = "use --confidence, which writes the probability that each change helped"
        raise InputError(f"--keep-unless was removed, it gained nothing in cross-validation; {instead}")
    return Outputs(arguments.output, arguments.reranked, arguments.nbest_size, arguments.confidence)


def add_settings(parser: argparse.ArgumentParser, form: str, what: str) -> None:
    """Declare --set, in one of the forms of `read_settings`."""
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar=form, help=what)


def read_settings(items: Sequence[str], form: str) -> dict[str, Any]:
    """Read --set, in the form KEY=VALUE as text or KEY=NUMBER as numbers; another form is an `InputError`."""
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        digits = re.fullmatch("-?[0-9]{1,18}", text)
        value = text if form == "KEY=VALUE" else int(text) if digits else number(text)
        if not equals or value is None:
            raise InputError(f"--set {item[:QUOTED]}: expected {form}")
        settings[key] = value
    return settings


def add_jobs(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare --jobs."""
    parser.add_argument(
        "--jobs",
        type=positive_number,
        metavar="N",
        help=f"{what} at a time, each with a GPU of its own or its share of the cores, as threads "
        "(default: one for each model, as far as there are GPUs or else cores)",
    )


def add_ray(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare --ray."""
    parser.add_argument(
        "--ray",
        default="",
        metavar="ADDRESS",
        help=f"{what} on the machines of this Ray cluster, one a core or GPU; auto is the one that runs here, or else "
        "one of this machine that ends with the command; needs moses-rerank[ray]",
    )


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Declare what features may use."""
    add_device(parser)
    add_precision(parser)
    parser.add_argument("--cache", default="", metavar="DIR", help="keep scores of models there, and look them up")


def read_resources(arguments: argparse.Namespace, ray: str = "") -> "Resources":
    """Return what features may use, of a command with or without `--ray`.

    Raises:
        InputError: a cache, whose file is for the processes of one machine, and a cluster.
    """
    from features.feature import Resources

    if arguments.cache and ray:
        raise InputError("--cache cannot go with --ray: its file is for the processes of one machine")
    return Resources(arguments.device, arguments.precision, arguments.cache)


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Declare --precision."""
    parser.add_argument(
        "--precision", default="fp32", choices=("fp32", "bf16"), help="of models; bf16 is faster (default: fp32)"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare --device."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: a GPU if there is one"
    )
