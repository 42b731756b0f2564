"""The command `moses-rerank`."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TextIO, cast

from moses_io.errors import InputError
from rerank import __version__

COMMANDS = (
    "run", "demo", "train", "score", "tune", "rerank", "evaluate", "explain", "validate", "export", "import-weights",
    "presets", "features",
)  # fmt: skip
"""Modules of `rerank.commands`: each has HELP, EXAMPLES, add_arguments(parser) and run(arguments) -> status or None."""


OUTPUTS = ("output", "reranked")
"""Arguments of commands that name what they write."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 for a fault of the input or of a disk, told in one line."""
    _open_standard_streams()
    cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8", errors="surrogateescape")
    parsed = _parser().parse_args(arguments)
    try:
        _check_outputs(parsed)
        status: int = parsed.run(parsed) or 0
        sys.stdout.flush()
    except InputError as error:
        print(f"moses-rerank {parsed.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _close_stdout()
        return 141
    except OSError as error:
        _close_stdout()
        print(f"moses-rerank {parsed.command}: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 2
    except MemoryError:
        print(f"moses-rerank {parsed.command}: out of memory; do less at a time", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"moses-rerank {parsed.command}: stopped", file=sys.stderr)
        return 130
    return status


def _open_standard_streams() -> None:
    """Open those that were closed at the start on the null device, before a file takes their numbers."""
    sys.stdin, sys.stdout, sys.stderr = sys.stdin or _null(), sys.stdout or _null(), sys.stderr or _null()


def _null() -> TextIO:
    return TextIOWrapper(open(os.devnull, "r+b", buffering=0), encoding="utf-8", write_through=True)


def _check_outputs(parsed: argparse.Namespace) -> None:
    """Refuse to write over a file that the command reads, by whatever name, or to write two things to one place."""
    paths = {name: value if isinstance(value, list) else [value] for name, value in vars(parsed).items()}
    outputs = [path for name in OUTPUTS for path in paths.get(name, []) if path is not None]
    inputs = [path for name, values in paths.items() if name not in OUTPUTS for path in values if isinstance(path, str)]
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise InputError("--output and --nbest name the same place")
    for output in outputs:
        for path in inputs:
            if os.path.isfile(path) and os.path.exists(output) and os.path.samefile(path, output):
                raise InputError(f"{output}: the command reads this file and would write over it; name another output")


def _close_stdout() -> None:
    """Let the interpreter flush into nothing when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moses-rerank",
        description="Rerank Moses n-best lists with attentional neural models and other features.",
        epilog="`moses-rerank demo` runs the whole chain on a small corpus that comes with it.",
    )
    parser.add_argument("--version", action="version", version=f"moses-rerank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"rerank.commands.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.description = module.HELP[0].upper() + module.HELP[1:] + "."
        command.epilog = f"examples:\n{module.EXAMPLES}" if module.EXAMPLES else None
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
