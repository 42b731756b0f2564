"""Arguments that several commands share."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from moses_io.files.errors import QUOTED, InputError, shown
from moses_io.files.text import number, whole
from moses_io.weights import weight_files
from rerank.reranker.inputs import check_paths

if TYPE_CHECKING:
    from features.feature import Resources


def whole_number(text: str) -> int:
    """Convert an argument that must be an integer from 0."""
    value = whole(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {shown(text)}")
    return value


def positive_number(text: str) -> int:
    """Convert an argument that must be an integer from 1."""
    value = whole_number(text)
    if not value:
        raise argparse.ArgumentTypeError("expected a whole number from 1, found '0'")
    return value


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Declare options for sentences without candidates and for outputs in addition to the translations."""
    add, read, write = declarers(parser)
    read(
        "--on-missing",
        default="error",
        metavar="blank|FILE",
        help="line for a sentence without candidates: an empty one, or the same line of FILE (default: an error)",
    )
    add("--nbest-size", type=positive_number, default=0, metavar="N", help="the N best of the list of --nbest alone")
    write(
        "--confidence",
        help="also write, a line a sentence, the score expected of it, 0 to 100, a tab, and the probability that the "
        "change from Moses' choice helped, empty where there is none",
    )
    add("--keep-unless", help=argparse.SUPPRESS)  # removed, see `read_outputs`
    read(
        "--moses-output",
        default="",
        help="Moses' own output, one line a source sentence, needed after MBR or consensus decoding (default: the "
        "candidates with the highest totals)",
    )


def read_outputs(arguments: argparse.Namespace) -> Any:
    """Return the `Outputs` of a command with `--output`, `--nbest` and the options of `add_choices`.

    Raises:
        InputError: incompatible arguments.
    """
    from rerank.linear.selection import Outputs

    if arguments.nbest_size and not arguments.nbest:
        raise InputError("--nbest-size needs --nbest, the list that it cuts")
    if arguments.keep_unless is not None:
        instead = "use --confidence, which writes the probability that each change helped"
        raise InputError(f"--keep-unless was removed, it gained nothing in cross-validation; {instead}")
    return Outputs(arguments.output, arguments.nbest, arguments.nbest_size, arguments.confidence)


def add_settings(parser: argparse.ArgumentParser, form: str, what: str) -> None:
    """Declare `--set`. `form` is a form of `read_settings`."""
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar=form, help=what)


def read_settings(items: Sequence[str], form: str) -> dict[str, Any]:
    """Parse the values of `--set`. Raise `InputError` if a value does not have the form.

    Args:
        items: the values.
        form: `KEY=VALUE`, whose values stay text, or `KEY=NUMBER`.
    """
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
    """Declare `--jobs`."""
    parser.add_argument(
        "--jobs",
        type=positive_number,
        metavar="N",
        help=f"{what} at a time, each with a GPU of its own or its share of the cores, as threads "
        "(default: one for each model, as far as there are GPUs or else cores)",
    )


def read_jobs(arguments: argparse.Namespace, models: int) -> int:
    """Return `--jobs` (default: as many as models can be trained at a time)."""
    from rerank.experiment.workers import jobs_for

    jobs: int | None = arguments.jobs
    return jobs or jobs_for(models, arguments.device, vars(arguments).get("ray", ""))


def add_allow_code(parser: argparse.ArgumentParser, file: str) -> None:
    """Declare `--allow-code` of a command that reads an experiment file."""
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help=f"let features that are code (command, module:Class) run though {file} is not a file of your own in "
        "the working folder or below it",
    )


def add_ray(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare `--ray`."""
    parser.add_argument(
        "--ray",
        default="",
        metavar="ADDRESS",
        help=f"{what} on the machines of this Ray cluster, one a core or GPU; auto is the one that runs here, or else "
        "one of this machine that ends with the command; needs moses-rerank[ray]",
    )


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Declare the options for device, precision and cache of features."""
    add_device(parser)
    add_precision(parser)
    _, read, _ = declarers(parser)
    read("--cache", default="", metavar="DIR", help="keep scores of models there, and look them up")


def read_resources(arguments: argparse.Namespace, ray: str = "") -> "Resources":
    """Return device, precision and cache of features. `ray` is the address of a Ray cluster, empty for none.

    Raises:
        InputError: a cache together with a cluster, because a cache file works only on one machine.
    """
    from features.feature import Resources

    if arguments.cache and ray:
        raise InputError("--cache cannot go with --ray: its file is for the processes of one machine")
    return Resources(arguments.device, arguments.precision, arguments.cache)


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Declare `--precision`."""
    parser.add_argument(
        "--precision", default="fp32", choices=("fp32", "bf16"), help="of models; bf16 is faster (default: fp32)"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare `--device`."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda"), help="default: a GPU if there is one"
    )


class InputPath(str):
    """The value of an argument that is, or contains, the path of an input."""


class OutputPath(str):
    """The value of an argument that is the path of an output."""


Declare = Callable[..., argparse.Action]
"""The type of `ArgumentParser.add_argument`."""


def declarers(parser: argparse._ActionsContainer) -> tuple[Declare, Declare, Declare]:
    """Return three functions that declare an argument: of any kind, with an input path, and with an output path."""
    add = parser.add_argument
    return add, partial(add, type=InputPath, metavar="FILE"), partial(add, type=OutputPath, metavar="FILE")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Check the input and output paths of a command. See `check_paths`."""
    values = [(name, value if isinstance(value, list) else [value]) for name, value in vars(arguments).items()]
    inputs = [(name, text) for name, listed in values for text in listed if isinstance(text, InputPath)]
    outputs = {f"--{name}": path for name, path in vars(arguments).items() if isinstance(path, OutputPath)}
    lossy = any(map(os.path.exists, outputs.values()))  # otherwise no existing file can be overwritten
    check_paths([path for name, text in inputs for path in (_files(name, text) if lossy else [text])], outputs)


def _files(name: str, text: str) -> list[str]:
    """Return all files and folders that the value of an argument refers to."""
    if name == "feature":  # [LABEL=]KIND[:ARG]
        from features.request import parse_requests

        return [path for request in parse_requests([text]) for path in request.files]
    if name == "lists":  # [NAME=]NBEST, or a path that contains `=`
        return [text, text.partition("=")[2]]
    if name in ("start", "weights") and os.path.isfile(text):
        return weight_files(text)
    return [text]
