"""The command `moses-rerank`."""

import argparse
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from io import TextIOWrapper
from typing import NoReturn, cast

from features.models.torchrun import is_one_of_several, prints_errors
from features.progress import log, progress_shown
from moses_io.files.errors import QUOTED, InputError, printable
from rerank import __version__
from rerank.commands.arguments import check_arguments, check_renamed

COMMANDS = (
    "init",
    "run",
    "study",
    "demo",
    "apply",
    "train",
    "finetune",
    "convert",
    "merge",
    "score",
    "tune",
    "rerank",
    "evaluate",
    "translate",
    "align",
    "explain",
    "plot",
    "validate",
    "export",
    "import-weights",
    "retune",
    "ems",
    "presets",
    "features",
)
"""Commands in the order of the help text.

Each is a module of `rerank.commands`, with `_` for `-`. It has HELP, EXAMPLES, `add_arguments(parser)` and
`run(arguments)`, which returns an exit status or None.
"""

MAX_MESSAGE_LENGTH = 500
"""Maximum characters of an error message."""

SPIN_COUNT = 10_000
"""How often a waiting thread of torch looks for work before it gives up its core.

With the default of GNU OpenMP, 300,000, commands are many times slower on a machine with other load.
"""

_LONG_WORD = re.compile(r"(\S{80})\S{40,}(\S{80})")


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong arguments in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and a message."""
        self.exit(2, _line(f"{self.prog}: {message}. See --help") + "\n" if prints_errors() else None)


@progress_shown()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Errors are reported in one line on stderr. The status is 0, 2 for a fault of the input or of the system, 130 after
    an interrupt, 141 if stdout was closed, or the status that the command returns.
    """
    _keep_closed_streams()
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))  # is read when a command imports torch
    if sys.stdout:
        cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8", errors="surrogateescape")
    command = ""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        command = f" {given[0]}" if given and given[0] in COMMANDS else ""
        check_renamed(given)
        parsed, unknown = make_parser().parse_known_args(given)
        command = f" {parsed.command}"
        if unknown:
            raise InputError(f"unknown arguments: {' '.join(unknown)[:QUOTED]}. See --help")
        if is_one_of_several() and parsed.command != "train":
            raise InputError("torchrun would run the command in every process. Only train supports it")
        check_arguments(parsed)
        status: int = parsed.run(parsed) or 0
        if sys.stdout:
            sys.stdout.flush()
    except InputError as error:
        _report_error(command, str(error))
        return 2
    except BrokenPipeError:
        _close_stdout()
        return 141
    except OSError as error:
        _close_stdout()
        _report_error(command, f"{error.filename or '<stdout>'}: {error.strerror}")
        return 2
    except MemoryError:
        _report_error(command, "out of memory. Process less at a time")
        return 2
    except KeyboardInterrupt:
        _report_error(command, "stopped")
        return 130
    return status


def _report_error(command: str, message: str) -> None:
    if prints_errors():
        log.error(_line(f"moses-rerank{command}: {message}"))


def _line(message: str) -> str:
    line = _LONG_WORD.sub(r"\1…\2", printable(message))
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[:MAX_MESSAGE_LENGTH]}…"


def _keep_closed_streams() -> None:
    """Open the null device for each standard stream that is closed, so that no other file gets its descriptor.

    Reading from stdin or writing to stdout is still an error then. Messages to stderr are lost.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")


def _close_stdout() -> None:
    """Redirect stdout to the null device, so that the flush at interpreter exit cannot fail."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the width of the terminal. Examples (indented lines) and lists stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(
            paragraph
            if paragraph.startswith("*") or "\n " in paragraph
            else textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
            for paragraph in paragraphs
        )


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. A parsed command has the attribute `run`, which `main` calls."""
    parser = Parser(
        prog="moses-rerank",
        description="Rerank Moses n-best lists with attentional neural models and other features.",
        epilog="`moses-rerank demo` runs all steps on the included sample corpus.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"moses-rerank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"rerank.commands.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, formatter_class=_HelpFormatter, allow_abbrev=False)
        command.description = module.HELP[0].upper() + module.HELP[1:] + "."
        command.epilog = f"examples:\n{module.EXAMPLES}" if module.EXAMPLES else None
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
