"""A reranker from what a tuning with `mert-moses.pl` leaves: dev, its references, the decoder and its tuned ini."""

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from features.feature import Resources
from features.models.training.request import ParallelFiles
from features.processes import killed_with_parent
from features.progress import log
from moses_io.errors import InputError, at
from moses_io.folders import locked, make_folder
from moses_io.nbest import read_moses_output
from moses_io.streams import open_output
from moses_io.weights import weight_files
from rerank.experiment.chain import run_experiment
from rerank.experiment.checks import check_inputs
from rerank.experiment.entries import NbestFiles
from rerank.experiment.file import Experiment, experiment_of
from rerank.experiment.stages import Stage, run_stages
from rerank.experiment.toml import check_code, feature_texts, read_toml
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


@dataclass(frozen=True)
class Retuning:
    """What is retuned, and where; paths are relative to the working folder.

    Attributes:
        source: of dev.
        references: path of the reference of dev, or the stem of several (`find_references`).
        decoder: with the tuned ini.
        corpus: that models are trained on.
        folder: for all results.
        experiment: file with models, features, tuning and test sets; empty for models that suit the corpus.
        allow_code: whether features that are code may run though this file is not the user's own.
    """

    source: str
    references: str
    decoder: Decoder
    corpus: ParallelFiles
    folder: str
    experiment: str = ""
    allow_code: bool = False

    @property
    def nbest(self) -> str:
        """Path of the list of dev, named as those of `mert-moses.pl`."""
        return os.path.join(self.folder, f"dev.best{self.decoder.size}.gz")

    @property
    def moses_output(self) -> str:
        """Path of the translations of dev that the decoder prints."""
        return os.path.join(self.folder, "dev.moses")


def retune(retuning: Retuning, resources: Resources, jobs: int | None = None) -> list[str]:
    """Decode dev, train, score, tune and keep a reranker: what is not done yet; return the lines of the reports.

    The folder gets the list of dev, what the decoder printed, and all that `run_experiment` makes.

    Raises:
        InputError: before anything is made: a file is missing or says what the arguments say, or there is no decoder;
            later: the decoder fails, or as `run_experiment`.
    """
    retuning.decoder.arguments(retuning.source, retuning.nbest)
    experiment = _experiment(retuning)
    check_inputs(experiment, to_make=experiment.dev.nbest)
    decoding = _decoding(retuning)
    make_folder(experiment.output)
    with locked(experiment.output):
        run_stages([decoding], experiment.output / RECORD)
    if _is_usable(retuning, experiment.tuning.filters.marks):
        experiment = _experiment(retuning, retuning.moses_output)
    return run_experiment(experiment, resources, jobs or jobs_for(len(experiment.models), resources.device))


def _decoding(retuning: Retuning) -> Stage:
    """Make the list of dev and Moses' output; files that the ini names, such as phrase tables, are not checked."""
    decoder, source, outputs = retuning.decoder, retuning.source, (retuning.nbest, retuning.moses_output)
    inputs = (decoder.program, source, *weight_files(decoder.config))
    settings = [decoder.command, decoder.flags, decoder.size]
    return Stage("decode dev", inputs, settings, outputs, partial(decoder.decode, source, *outputs))


def _is_usable(retuning: Retuning, marks: bool) -> bool:
    """Warn and return False unless the decoder printed one translation per sentence of dev, without forbidden marks."""
    try:
        read_moses_output(retuning.moses_output, retuning.source, marks)
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


def _experiment(retuning: Retuning, moses_output: str = "") -> Experiment:
    """Put the arguments into the experiment that the file describes, or that has models which suit the corpus."""
    path = retuning.experiment
    own = read_toml(path) if path else {}
    values = _values(retuning, moses_output)
    with at(f"{path}: " if path else ""):
        for key in values:
            if key in own:
                raise InputError(f"{key}: the arguments say this; leave it out")
        if not retuning.allow_code:
            check_code(feature_texts(own), path)
        return experiment_of(own | values, Path(path).resolve().parent)


def _values(retuning: Retuning, moses_output: str) -> dict[str, Any]:
    """Return what the arguments say as the keys of an experiment file."""
    absolute, corpus = os.path.abspath, retuning.corpus
    train = {"source": absolute(corpus.source), "target": absolute(corpus.target)}
    train |= {"alignment": absolute(corpus.alignment)} if corpus.alignment else {}
    references = tuple(absolute(path) for path in find_references(retuning.references))
    printed = absolute(moses_output) if moses_output else ""
    dev = NbestFiles(absolute(retuning.source), references, absolute(retuning.nbest), printed)
    return {
        "output": absolute(retuning.folder),
        "start": absolute(retuning.decoder.config),
        "train": train,
        "dev": dev.table,
    }
