"""The n-best list that a decoder makes of a source text, called as `mert-moses.pl` calls it."""

import contextlib
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from features.processes import killed_with_parent
from moses_io.errors import InputError
from moses_io.streams import open_output

LOG = "decoder.log"
"""Stderr of the decoder, next to the list."""

_BETWEEN = ".decoding"


@dataclass(frozen=True)
class Decoder:
    """A decoder of Moses and how it is called; paths are relative to the working folder.

    Attributes:
        command: path, or name of a program, and its first arguments, as a shell would split them.
        flags: further arguments, likewise.
        config: the ini with its features and weights.
        size: candidates of a sentence, at most.
    """

    command: str
    flags: str
    config: str
    size: int

    @property
    def program(self) -> str:
        """Path of the program.

        Raises:
            InputError: there is none, or none that may be run, or quotes of the command or the flags are not closed.
        """
        words = _split(self.command, "the decoder")
        if not words or not words[0]:
            raise InputError("the decoder: no program named")
        path = shutil.which(words[0])
        if path is None:
            raise InputError(f"{words[0]}: no program of this name that can be run")
        return path

    def arguments(self, source: str, nbest: str) -> list[str]:
        """Return the program and its arguments for a source text and a list to write."""
        first, flags = _split(self.command, "the decoder")[1:], _split(self.flags, "--decoder-flags")
        asked = ("-n-best-list", nbest, str(self.size), "distinct", "-input-file", source)
        return [self.program, *first, *flags, "-config", self.config, *asked]

    def decode(self, source: str, nbest: str, translations: str) -> None:
        """Write the list of a source text and what the decoder prints; its stderr goes to `LOG` next to the list.

        Args:
            source: path of the text.
            nbest: path of the list.
            translations: path of the decoder's stdout, one translation for each line of the source.

        Raises:
            InputError: the decoder cannot be started, fails, or writes no list.
        """
        place = Path(nbest).parent
        log = place / LOG
        with _folder_between(place) as folder:
            made, printed = folder / "nbest", folder / "translations"
            with log.open("wb") as stderr, printed.open("wb") as stdout:
                status = _run(self.arguments(source, str(made)), stdout.fileno(), stderr.fileno())
            if status:
                end = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
                raise InputError(f"{self.program}: {end}; what it said is in {log}")
            if not made.is_file() or not made.stat().st_size:
                raise InputError(f"{self.program}: wrote no n-best list; what it said is in {log}")
            for part, output in ((made, nbest), (printed, translations)):
                with part.open("rb") as content, open_output(output) as stream:
                    shutil.copyfileobj(content, stream)


def _split(text: str, what: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{what}: {error}".lower()) from None


@contextlib.contextmanager
def _folder_between(place: Path) -> Iterator[Path]:
    """Give an empty folder that is gone at the end; what a killed process left of one is removed first."""
    folder = place / _BETWEEN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _run(arguments: list[str], stdout: int, stderr: int) -> int:
    """Run a program to its end and return its status; it and its process group are killed with this process."""
    try:
        program = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
    except OSError as error:
        raise InputError(f"{arguments[0]}: {error.strerror}") from None
    with killed_with_parent(program):
        return program.wait()
