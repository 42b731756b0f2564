"""Arguments that several commands share, and the check of what they read and write."""

import argparse
import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moses_io.files.errors import QUOTED, InputError, shown
from moses_io.files.streams import STANDARD
from moses_io.files.text import number, whole
from moses_io.weights import weight_files

if TYPE_CHECKING:
    from features.feature import Resources

_PARTS = re.compile(
    r"config\.json|.*\.(safetensors|vocabulary|bpe)|(features|scores)\.dat|init\.(dense|opt)|sparse-weights"
)
"""Names of files that make a folder a model, or one that `export` wrote."""


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
    """Return the `Outputs` of a command that has `--output`, `--nbest` and `add_choices`.

    Raises:
        InputError: arguments that do not go together.
    """
    from rerank.linear.selection import Outputs

    if arguments.nbest_size and not arguments.nbest:
        raise InputError("--nbest-size needs --nbest, the list that it cuts")
    if arguments.keep_unless is not None:
        instead = "use --confidence, which writes the probability that each change helped"
        raise InputError(f"--keep-unless was removed, it gained nothing in cross-validation; {instead}")
    return Outputs(arguments.output, arguments.nbest, arguments.nbest_size, arguments.confidence)


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


def read_jobs(arguments: argparse.Namespace, models: int) -> int:
    """Return --jobs, by default as many as models can be trained at a time."""
    from rerank.experiment.workers import jobs_for

    jobs: int | None = arguments.jobs
    return jobs or jobs_for(models, arguments.device, vars(arguments).get("ray", ""))


def add_allow_code(parser: argparse.ArgumentParser, file: str) -> None:
    """Declare --allow-code of a command that reads an experiment file."""
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help=f"let features that are code (command, module:Class) run though {file} is not a file of your own in "
        "the working folder or below it",
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
    _, read, _ = declarers(parser)
    read("--cache", default="", metavar="DIR", help="keep scores of models there, and look them up")


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


class InputPath(str):
    """Value of an argument that names a file or folder to read, or has the name of one in it."""


class OutputPath(str):
    """Value of an argument that names a file or folder to write."""


Declare = Callable[..., argparse.Action]
"""`add_argument` of a parser."""


def declarers(parser: argparse._ActionsContainer) -> tuple[Declare, Declare, Declare]:
    """Return functions that declare an argument of any kind, one that names what is read, and what is written."""
    add = parser.add_argument
    return add, partial(add, type=InputPath, metavar="FILE"), partial(add, type=OutputPath, metavar="FILE")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Check what the arguments of a command name, by how they were declared; see `check_paths`."""
    values = [(name, value if isinstance(value, list) else [value]) for name, value in vars(arguments).items()]
    inputs = [(name, text) for name, listed in values for text in listed if isinstance(text, InputPath)]
    outputs = {f"--{name}": path for name, path in vars(arguments).items() if isinstance(path, OutputPath)}
    lossy = any(map(os.path.exists, outputs.values()))  # else no file is written over, whatever is read
    check_paths([path for name, text in inputs for path in (_files(name, text) if lossy else [text])], outputs)


def _files(name: str, text: str) -> list[str]:
    """Return all files and folders that a value of an argument names."""
    if name == "feature":  # [LABEL=]KIND[:ARG]
        from features.request import parse_requests

        return [path for request in parse_requests([text]) for path in request.files]
    if name == "lists":  # [NAME=]NBEST, or a list with a `=` in its own name
        return [text, text.partition("=")[2]]
    if name in ("start", "weights") and os.path.isfile(text):
        return weight_files(text)
    return [text]


def check_paths(inputs: Sequence[str], outputs: Mapping[str, str]) -> None:
    """Check the files and folders that a command reads and writes before it does so.

    Args:
        inputs: paths that are read.
        outputs: paths that are written, by the options that name them.

    Raises:
        InputError: a path with a NUL, stdin named twice, one place for two outputs, or an output that is read, by
            whatever name: an input, a file that an input names, or a part of a folder that is read.
    """
    if any("\0" in path for path in (*inputs, *outputs.values())):
        raise InputError("a name has a NUL in it, which no file can have")
    if inputs.count(STANDARD) > 1:
        raise InputError("stdin is named twice, and can be read once; name a file")
    ordered = sorted(outputs.items(), key=lambda output: output[0] != "--output")  # messages name the main one first
    for (one, path), (other, same) in itertools.combinations(ordered, 2):
        if os.path.realpath(path) == os.path.realpath(same):
            raise InputError(f"{one} and {other} name the same place")
    for output in filter(os.path.exists, outputs.values()):
        _check_output(output, inputs)


def _check_output(output: str, inputs: Iterable[str]) -> None:
    """Refuse to write over an input, by whatever name, or over a part of a folder among them."""
    for path in inputs:
        if (os.path.isfile(path) and os.path.samefile(path, output)) or _is_part(output, path):
            raise InputError(f"{output}: the command reads this file and would write over it; name another output")


def _is_part(output: str, folder: str) -> bool:
    """Tell whether a file is one of a model, of a reranker or of an export in that folder."""
    real = Path(os.path.realpath(output))
    if not os.path.isdir(folder) or Path(os.path.realpath(folder)) not in real.parents:
        return False
    from rerank.reranker import MANIFEST

    return _PARTS.fullmatch(real.name) is not None or os.path.isfile(os.path.join(folder, MANIFEST))
