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
from rerank.inputs import check_paths

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


Container = argparse._ActionsContainer
"""A parser or a group of its arguments."""


class InputPath(str):
    """The value of an argument that is, or contains, the path of an input."""


class OutputPath(str):
    """The value of an argument that is the path of an output."""


Declare = Callable[..., argparse.Action]
"""The type of `ArgumentParser.add_argument`."""


def declarers(parser: Container) -> tuple[Declare, Declare, Declare]:
    """Return three functions that declare an argument: of any kind, with an input path, and with an output path."""
    add = parser.add_argument
    return add, partial(add, type=InputPath, metavar="FILE"), partial(add, type=OutputPath, metavar="FILE")


def add_choices(parser: Container, nbest: str) -> None:
    """Declare options for sentences without candidates and for the sorted list.

    Args:
        parser: parser of a command with `--output`.
        nbest: description of the sorted list.
    """
    add, read, write = declarers(parser)
    write("--nbest", help=f"additional output: {nbest}")
    add(
        "--nbest-size",
        type=positive_number,
        default=0,
        metavar="N",
        help="maximum number of candidates per sentence in the list of --nbest (default: all)",
    )
    read(
        "--on-missing",
        default="error",
        metavar="blank|FILE",
        help="line for a sentence without candidates: empty line (blank) or the line of FILE with the same number "
        "(default: error)",
    )


def add_confidence(parser: argparse.ArgumentParser) -> Container:
    """Declare options for the confidence of choices in a group of their own, and return the group."""
    group = parser.add_argument_group("confidence estimation")
    _, read, write = declarers(group)
    write(
        "--confidence",
        help="additional output, one line per source sentence: expected score of the translation (0 to 100, in the "
        "metric of the key confidence, by default the tuning metric), a tab, and the probability that the translation "
        "is better than Moses' (empty if both are equal or Moses' translation is not in the list)",
    )
    add_moses_output(read)
    return group


def add_moses_output(read: Declare) -> None:
    """Declare the option for Moses' own output, which replaces the candidates with the highest totals."""
    read(
        "--moses-output",
        default="",
        help="translations by Moses, one line per source sentence, needed if Moses used MBR or consensus decoding "
        "(default: candidates with the highest total scores)",
    )


def add_initial_weights(read: Declare) -> None:
    """Declare the option for the weights with which tuning starts."""
    read(
        "--initial-weights",
        required=True,
        metavar="WEIGHTS",
        help="initial weights: moses.ini, another ini or weight file, or init.opt of mert",
    )


def add_filter(add: Declare) -> None:
    """Declare the option for text filters that apply before the metric."""
    add(
        "--filter",
        default="",
        metavar="NAMES",
        help="filters for candidates and references, such as debpe,detokenize, see `evaluate --help` (default: none)",
    )


def read_outputs(arguments: argparse.Namespace) -> Any:
    """Return the `Outputs` of a command with `--output` and the options of `add_choices` and `add_confidence`.

    Raises:
        InputError: incompatible arguments.
    """
    from rerank.linear.selection import Outputs

    if arguments.nbest_size and not arguments.nbest:
        raise InputError("--nbest-size needs --nbest, the list that it cuts")
    return Outputs(arguments.output, arguments.nbest, arguments.nbest_size, arguments.confidence)


def add_settings(parser: Container, form: str, description: str) -> None:
    """Declare `--set`. `form` is a form of `read_settings`."""
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar=form, help=description)


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
        if not key or not equals or value is None:
            raise InputError(f"--set {item[:QUOTED]}: expected {form}")
        if key in settings:
            raise InputError(f"--set {item[:QUOTED]}: {key} occurs twice")
        settings[key] = value
    return settings


def add_jobs(parser: Container, description: str) -> None:
    """Declare `--jobs`."""
    parser.add_argument(
        "--jobs",
        type=positive_number,
        metavar="N",
        help=f"maximum number of {description} at a time, which share cores and GPUs "
        "(default: number of models to train, at most one per GPU, or one per core if there is none)",
    )


def read_jobs(arguments: argparse.Namespace, models: int) -> int:
    """Return `--jobs` (default: as many as models can be trained at a time)."""
    from rerank.experiment.workers import jobs_for

    jobs: int | None = arguments.jobs
    return jobs or jobs_for(models, arguments.device, arguments.ray)


def add_allow_code(parser: Container, file: str) -> None:
    """Declare `--allow-code` of a command that reads an experiment file."""
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help=f"permission for features that run code (command, server, module:Class) even if {file} belongs to another "
        "user or is outside the current folder",
    )


def add_ray(parser: Container, description: str) -> None:
    """Declare `--ray`."""
    parser.add_argument(
        "--ray",
        default="",
        metavar="ADDRESS",
        help=f"address of a Ray cluster for {description}, or auto: the cluster of RAY_ADDRESS, else the one running "
        "on this machine, else a temporary one. Requires moses-rerank[ray] (default: no cluster)",
    )


def add_resources(parser: Container) -> None:
    """Declare the options for device, precision and cache of features."""
    add_device(parser)
    add_precision(parser)
    _, read, _ = declarers(parser)
    read(
        "--cache",
        default="",
        metavar="DIR",
        help="folder that caches the scores of models for later runs (default: no cache)",
    )


def read_resources(arguments: argparse.Namespace, ray: str = "") -> "Resources":
    """Return device, precision and cache of features. `ray` is the address of a Ray cluster, empty for none.

    Raises:
        InputError: a cache together with a cluster, because a cache file works only on one machine.
    """
    from features.feature import Resources

    if arguments.cache and ray:
        raise InputError("--cache cannot be combined with --ray: its file is for the processes of one machine")
    return Resources(arguments.device, arguments.precision, arguments.cache)


def add_precision(parser: Container) -> None:
    """Declare `--precision`."""
    parser.add_argument(
        "--precision",
        default="fp32",
        choices=("fp32", "bf16"),
        help="precision of matrix products in scoring and translation, bf16 is faster where it is supported "
        "(default: fp32)",
    )


def add_device(parser: Container) -> None:
    """Declare `--device`."""
    parser.add_argument(
        "--device",
        default="auto",
        choices=("auto", "cpu", "cuda"),
        help="device of models (default: auto, a GPU if available)",
    )


RENAMED = {
    "tune": {
        "--start": "--initial-weights",
        "--choose": "--selection",
        "--choose-reference": "--selection-reference",
        "--features": "--extractor-features",
        "--statistics": "--extractor-scores",
    },
    "export": {"--start": "--initial-weights"},
    "train": {"--start-from": "--pretrained-model", "--alignments": "--alignment"},
    "plot": {"--alignments": "--alignment"},
    "apply": {"--batch": "--batch-size"},
}
"""Former names of options with their present names, by command, for messages."""


def check_renamed(arguments: Sequence[str]) -> None:
    """Raise `InputError`, with the present name, if a former name of an option follows the name of its command."""
    command, *options = arguments or [""]
    for option in (each.partition("=")[0] for each in options):
        if option in RENAMED.get(command, {}):
            raise InputError(f"{option} is now {RENAMED[command][option]}")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Check the input and output paths of a command. See `check_paths`."""
    values = [(name, value if isinstance(value, list) else [value]) for name, value in vars(arguments).items()]
    inputs = [(name, text) for name, listed in values for text in listed if isinstance(text, InputPath)]
    outputs = {f"--{name}": path for name, path in vars(arguments).items() if isinstance(path, OutputPath)}
    lossy = any(map(os.path.exists, outputs.values()))  # otherwise no existing file can be overwritten
    check_paths([path for name, text in inputs for path in (_files(name, text) if lossy else [text])], outputs)


def _files(name: str, text: str) -> list[str]:
    """Return all files and folders that the value of an argument refers to."""
    from features.request import parse_requests, parts_of

    if name == "feature":  # [LABEL=]KIND[:ARG]
        return [path for request in parse_requests([text]) for path in request.files]
    if name == "models":
        return parts_of(text)
    if name == "lists":  # [NAME=]NBEST, or a path that contains `=`
        return [text, text.partition("=")[2]]
    if name in ("initial_weights", "weights") and os.path.isfile(text):
        return weight_files(text)
    return [text]
