"""A reranker from what a tuning with `mert-moses.pl` leaves: dev, its references, the decoder and its tuned ini."""

import itertools
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from features.feature import Resources
from features.models.training.request import ParallelFiles
from features.progress import warn
from moses_io.errors import InputError, at
from moses_io.folders import locked, make_folder
from moses_io.nbest import read_moses_output
from moses_io.weights import weight_files
from rerank.experiment.chain import run_experiment
from rerank.experiment.checks import check_inputs
from rerank.experiment.file import Experiment, experiment_of
from rerank.experiment.sets import NbestFiles
from rerank.experiment.stages import Stage, run_stages
from rerank.experiment.toml import read_toml
from rerank.experiment.trust import check_code, feature_texts
from rerank.experiment.workers import jobs_for
from rerank.moses.decoder import Decoder

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
        warn(f"{error}; the candidates with the highest totals are taken for Moses' choices on dev")
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
