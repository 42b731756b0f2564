"""A reranker from what a tuning with `mert-moses.pl` leaves: dev, its references, the decoder and its tuned ini."""

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from features.feature import Resources
from features.models.training.request import ParallelFiles
from features.processes import killed_with_parent
from features.progress import log
from moses_io.files.errors import InputError, at
from moses_io.files.folders import locked, make_folder
from moses_io.files.streams import open_output
from moses_io.nbest import read_moses_output
from moses_io.weights import weight_files
from rerank.experiment.chain import run_experiment
from rerank.experiment.checks import check_inputs
from rerank.experiment.entries import NbestFiles
from rerank.experiment.file import Experiment, experiment_of
from rerank.experiment.stages import Stage, run_stages
from rerank.experiment.toml import check_code, read_toml
from rerank.experiment.workers import jobs_for

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


RECORD = "decoding.json"
"""What the list of dev was made of, beside it."""


def retune(
    decoder: Decoder,
    source: str,
    references: str,
    corpus: ParallelFiles,
    folder: str,
    resources: Resources,
    *,
    experiment: str = "",
    allow_code: bool = False,
    jobs: int | None = None,
) -> list[str]:
    """Decode dev, train, score, tune and keep a reranker: what is not done yet; return the lines of the reports.

    The folder gets the list of dev, what the decoder printed, and all that `run_experiment` makes.

    Args:
        decoder: with the tuned ini.
        source: of dev.
        references: path of the reference of dev, or the stem of several (`find_references`).
        corpus: that models are trained on.
        folder: for all results.
        resources: for training and scoring.
        experiment: file with models, features, tuning and test sets; empty for models that suit the corpus.
        allow_code: whether features that are code may run though this file is not the user's own.
        jobs: models and features at a time; default: what the device allows.

    Raises:
        InputError: before anything is made: a file is missing or says what the arguments say, or there is no decoder;
            later: the decoder fails, or as `run_experiment`.
    """
    nbest = os.path.join(folder, f"dev.best{decoder.size}.gz")  # as mert-moses.pl names its lists
    printed = os.path.join(folder, "dev.moses")
    decoder.arguments(source, nbest)
    dev = NbestFiles(source, tuple(find_references(references)), nbest)
    whole = _experiment(experiment, _tables(decoder, dev, corpus, folder), allow_code)
    check_inputs(whole, to_make=whole.dev.nbest)
    make_folder(whole.output)
    with locked(whole.output):
        run_stages([_decoding(decoder, source, nbest, printed)], whole.output / RECORD)
    if _is_usable(printed, source, whole.tuning.filters.marks):
        dev = replace(dev, moses_output=printed)
        whole = _experiment(experiment, _tables(decoder, dev, corpus, folder), allow_code)
    return run_experiment(whole, resources, jobs or jobs_for(len(whole.models), resources.device))


def _decoding(decoder: Decoder, source: str, *outputs: str) -> Stage:
    """Make the list of dev and Moses' output; files that the ini names, such as phrase tables, are not checked."""
    inputs = (decoder.program, source, *weight_files(decoder.config))
    settings = [decoder.command, decoder.flags, decoder.size]
    return Stage("decode dev", inputs, settings, outputs, partial(decoder.decode, source, *outputs))


def _is_usable(printed: str, source: str, marks: bool) -> bool:
    """Warn and return False unless the decoder printed one translation per sentence of dev, without forbidden marks."""
    try:
        read_moses_output(printed, source, marks)
    except InputError as error:
        log.warning(f"{error}; the candidates with the highest totals are taken for Moses' choices on dev")
        return False
    return True


def find_references(path: str) -> list[str]:
    """Return the references that `mert-moses.pl` takes at a path: this file, else PATH0, PATH1, …, else PATH.ref0, ….

    Raises:
        InputError: there are none.
    """
    if os.path.exists(path):
        return [path]
    for stem in (path, f"{path}.ref"):
        numbered = list(itertools.takewhile(os.path.exists, (f"{stem}{number}" for number in itertools.count())))
        if numbered:
            return numbered
    raise InputError(f"{path}: no such file, nor {path}0 or {path}.ref0")


def _experiment(path: str, tables: dict[str, Any], allow_code: bool) -> Experiment:
    """Put the arguments into the experiment that the file describes, or that has models which suit the corpus."""
    own = read_toml(path) if path else {}
    with at(f"{path}: " if path else ""):
        for key in tables:
            if key in own:
                raise InputError(f"{key}: the arguments say this; leave it out")
        check_code(own, path, allow_code)
        return experiment_of(own | tables, Path(path).resolve().parent)


def _tables(decoder: Decoder, dev: NbestFiles, corpus: ParallelFiles, folder: str) -> dict[str, Any]:
    """Return what the arguments say as the keys of an experiment file."""
    train = {"source": corpus.source, "target": corpus.target, "alignment": corpus.alignment}
    tables = {"output": folder, "start": decoder.config, "train": train, "dev": dev.table}
    return {key: _absolute(value) for key, value in tables.items()}


def _absolute(value: Any) -> Any:
    """Return a path, paths, or a table of paths with absolute ones; empty ones are left out of a table."""
    if isinstance(value, dict):
        return {key: _absolute(each) for key, each in value.items() if each}
    return [os.path.abspath(path) for path in value] if isinstance(value, list) else os.path.abspath(value)
