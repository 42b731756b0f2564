"""Train a reranker from the files of a tuning with `mert-moses.pl`: dev, references, decoder and tuned ini."""

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
from features.processes import killed_with_parent
from features.progress import log
from moses_io.files.errors import InputError, at
from moses_io.files.folders import locked, make_folder
from moses_io.files.streams import open_output
from moses_io.files.text import ParallelFiles, read_lines
from moses_io.nbest import read_moses_output
from moses_io.weights import weight_files
from rerank.experiment.checks import check_inputs
from rerank.experiment.entries import NbestFiles
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import experiment_of
from rerank.experiment.plan import with_all_models
from rerank.experiment.run import run_experiment
from rerank.experiment.stages import Stage, run_stages
from rerank.experiment.toml import check_code, read_toml

LOG = "decoder.log"
"""Name of the file with the decoder's stderr, next to the list."""

_TEMPORARY = ".decoding"


@dataclass(frozen=True)
class Decoder:
    """Command line of a Moses decoder. Paths are relative to the working folder.

    Attributes:
        command: path or name of the program and its first arguments, with the quoting of a shell.
        flags: further arguments, with the quoting of a shell.
        config: path of the ini with features and weights.
        size: maximum number of candidates per sentence.
    """

    command: str
    flags: str
    config: str
    size: int

    @property
    def program(self) -> str:
        """Path of the program.

        Raises:
            InputError: the command is empty or has unclosed quotes, or the program does not exist or is not executable.
        """
        words = _split(self.command, "the decoder")
        if not words or not words[0]:
            raise InputError("the decoder: expected a program, found none")
        path = shutil.which(words[0])
        if path is None:
            raise InputError(f"{words[0]}: no executable program of this name")
        return path

    def arguments(self, source: str, nbest: str) -> list[str]:
        """Return the command line that decodes a source text and writes an n-best list.

        Raises:
            InputError: the program cannot be run, or the command or the flags have unclosed quotes.
        """
        first, flags = _split(self.command, "the decoder")[1:], _split(self.flags, "--decoder-flags")
        options = ("-n-best-list", nbest, str(self.size), "distinct", "-input-file", source)
        return [self.program, *first, *flags, "-config", self.config, *options]

    def decode(self, source: str, nbest: str, translations: str) -> None:
        """Decode a source text and write its n-best list and translations. Stderr goes to `LOG` next to the list.

        Args:
            source: path of the source text.
            nbest: path of the list to write.
            translations: path for the decoder's stdout, one translation per line of the source.

        Raises:
            InputError: the decoder cannot be started, fails, or writes no list.
        """
        target_folder = Path(nbest).parent
        messages = target_folder / LOG
        with _temporary_folder(target_folder) as folder:
            new_list, new_translations = folder / "nbest", folder / "translations"
            with messages.open("wb") as stderr, new_translations.open("wb") as stdout:
                status = _run(self.arguments(source, str(new_list)), stdout.fileno(), stderr.fileno())
            if status:
                end = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
                raise InputError(f"{self.program}: {end}. See its messages in {messages}")
            if not new_list.is_file() or not new_list.stat().st_size:
                raise InputError(f"{self.program}: wrote no n-best list. See its messages in {messages}")
            for part, output in ((new_list, nbest), (new_translations, translations)):
                with part.open("rb") as content, open_output(output) as stream:
                    shutil.copyfileobj(content, stream)


def _split(text: str, name: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{name}: {error}".lower()) from None


@contextlib.contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a new empty folder that is removed at the end. A folder left by a killed process is removed first."""
    folder = parent / _TEMPORARY
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _run(arguments: list[str], stdout: int, stderr: int) -> int:
    """Run a program and return its exit status. Its process group is killed if this process dies."""
    try:
        program = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
    except OSError as error:
        raise InputError(f"{arguments[0]}: {error.strerror}") from None
    with killed_with_parent(program):
        return program.wait()


RECORD = "decoding.json"
"""Name of the file, next to the list of dev, that records the inputs and settings that the list was made with."""


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
    """Decode dev, train models, score, tune and save a reranker. Return the lines of the reports.

    Steps whose results are already in the folder and up to date are skipped. The folder gets the n-best list of dev,
    the decoder's translations, and all results of `run_experiment`.

    Args:
        decoder: decoder with the tuned ini.
        source: path of the source of dev.
        references: path of the reference of dev, or common prefix of several (see `find_references`).
        corpus: training corpus of the models.
        folder: path of the folder for all results.
        resources: device and cache settings for training and scoring.
        experiment: path of an experiment file with models, features, tuning and test sets. Empty: use models that suit
            the size of the corpus.
        allow_code: whether features that are code may run if the experiment file belongs to another user or is outside
            the working folder.
        jobs: number of models and features to compute in parallel. Default: chosen for the device.

    Raises:
        InputError: a file is missing, the experiment file sets a value that is also an argument, or the decoder is
            missing (all checked before work starts). Later: the decoder or a step of `run_experiment` fails.
    """
    nbest = os.path.join(folder, f"dev.best{decoder.size}.gz")  # as mert-moses.pl names its lists
    printed = os.path.join(folder, "dev.moses")
    decoder.arguments(source, nbest)  # only for its errors
    dev = NbestFiles(source, tuple(find_references(references)), nbest)
    whole = _experiment(experiment, _tables(decoder, dev, corpus, folder), allow_code)
    check_inputs(with_all_models(whole), to_make=whole.dev.nbest)
    make_folder(whole.output)
    with locked(whole.output):
        run_stages([_decoding(decoder, source, nbest, printed)], whole.output / RECORD)
    if _is_usable(printed, source, whole.tuning.filters.marks):
        dev = replace(dev, moses_output=printed)
        whole = _experiment(experiment, _tables(decoder, dev, corpus, folder), allow_code)
    return run_experiment(whole, resources, jobs)


def _decoding(decoder: Decoder, source: str, *outputs: str) -> Stage:
    """Return the stage that makes the list of dev and Moses' output.

    It runs again if the decoder, the source, the ini or the settings change. Changes to files that the ini names, such
    as phrase tables, are not detected.
    """
    inputs = (decoder.program, source, *weight_files(decoder.config))
    settings = [decoder.command, decoder.flags, decoder.size]
    return Stage("decode dev", inputs, settings, outputs, partial(decoder.decode, source, *outputs))


def _is_usable(printed: str, source: str, marks: bool) -> bool:
    """Return whether the decoder printed one translation per sentence of dev, without segmentation marks.

    Marks are allowed if a filter removes them (`marks`). If the output is not usable, log a warning.
    """
    try:
        read_moses_output(printed, marks=marks).check(len(read_lines(source)), source)
    except InputError as error:
        log.warning(f"{error}. The candidates with the highest total scores are used as Moses' choices on dev")
        return False
    return True


def find_references(path: str) -> list[str]:
    """Return the paths of the references as `mert-moses.pl` finds them.

    They are PATH itself if it exists, otherwise PATH0, PATH1, …, otherwise PATH.ref0, PATH.ref1, ….

    Raises:
        InputError: no such file exists.
    """
    if os.path.exists(path):
        return [path]
    for stem in (path, f"{path}.ref"):
        numbered = list(itertools.takewhile(os.path.exists, (f"{stem}{number}" for number in itertools.count())))
        if numbered:
            return numbered
    raise InputError(f"{path}: no such file, nor {path}0 or {path}.ref0")


def _experiment(path: str, tables: dict[str, Any], allow_code: bool) -> Experiment:
    """Return the experiment in a file, or a default one, with the arguments of `retune` filled in.

    Raise `InputError` if the file sets one of these arguments itself.
    """
    values = read_toml(path) if path else {}
    with at(f"{path}: " if path else ""):
        for key in tables:
            if key in values:
                raise InputError(f"{key}: already set by the arguments. Remove it")
        check_code(values, path, allow_code)
        return experiment_of(values | tables, Path(path).resolve().parent if path else Path.cwd())


def _tables(decoder: Decoder, dev: NbestFiles, corpus: ParallelFiles, folder: str) -> dict[str, Any]:
    """Return the arguments of `retune` as keys of an experiment file."""
    train = {"source": corpus.source, "target": corpus.target, "alignment": corpus.alignment}
    tables = {"output": folder, "initial_weights": decoder.config, "train": train, "dev": dev.table}
    return {key: _absolute(value) for key, value in tables.items()}


def _absolute(value: Any) -> Any:
    """Return a path, a list of paths, or a table of paths, made absolute. Empty values of a table are dropped."""
    if isinstance(value, dict):
        return {key: _absolute(each) for key, each in value.items() if each}
    return [os.path.abspath(path) for path in value] if isinstance(value, list) else os.path.abspath(value)
