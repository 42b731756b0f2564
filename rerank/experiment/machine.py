"""The machine of a run, and its speed."""

import tempfile
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from features.arrays import Integers
from features.models.cost import CorpusSize, TimeFactors
from features.models.training.request import TrainingRequest
from features.progress import log
from moses_io.files.folders import locked, make_folder, remove
from moses_io.files.json_files import read_record, write_json
from moses_io.files.streams import open_input
from moses_io.files.text import ParallelFiles, parallel_lines, tokens
from rerank.experiment.corpus import Corpus
from rerank.experiment.costs import METRIC, READ
from rerank.experiment.experiment import Experiment
from rerank.experiment.recipe import FORWARD, MAX_PAIRS, USUAL_SIZE, find_recipe, models_of
from rerank.experiment.workers import do_all, jobs_for
from rerank.metrics.metric import Metric

SAMPLE, MAX_SAMPLE_LENGTH = 4_000, 50
"""Sentence pairs on which training and scoring are measured, and their maximum length in words."""

SAMPLE_CANDIDATES = 20_000
"""Maximum candidates on which reading is measured."""

BUSY = 0.2
"""Fraction of a measurement in which the thread waits for a core. Above it, a message is logged."""

SPEED_FOLDER = ".speed-"
"""Prefix of the temporary folder of a measurement, in the folder of results."""

_NO_SETTINGS = ("preset", "candidates")
"""Keys of a model that are not settings of its training."""


@dataclass(frozen=True)
class Machine:
    """Device and parallelism of the machine that a run is planned for.

    Attributes:
        device: `auto`, `cpu` or `cuda`.
        jobs: requested number of models that train at a time, or None for a number that suits the device.
        address: address of a Ray cluster, or empty for processes of this machine.
    """

    device: str = "auto"
    jobs: int | None = None
    address: str = ""

    def jobs_of(self, models: int) -> int:
        """Return how many of the models train at a time."""
        return self.jobs or jobs_for(models, self.device, self.address)


def measure_factors(
    experiment: Experiment, corpus: Corpus, machine: Machine, size: int = USUAL_SIZE
) -> TimeFactors | None:
    """Measure the time factors. The result is None if the corpus has only long lines.

    Training and scoring are measured with the first model and the settings of a short training, in as many processes as
    models can train at a time. The same factors are assumed for larger networks, other models and larger batches. For
    lists, the first lines of the list of dev are read and BLEU of the candidates is computed. This factor is also
    assumed for tuning.

    Args:
        experiment: an experiment whose models are still to be chosen.
        corpus: its training corpus.
        machine: the machine.
        size: `hidden_size` of the network, except on small corpora.
    """
    table = find_recipe(corpus, {FORWARD: min(1.0, MAX_PAIRS / corpus.pairs)}, size=size).models[FORWARD]
    settings = {key: value for key, value in table.items() if key not in _NO_SETTINGS}
    request, lengths = TrainingRequest(table["preset"], settings=settings), _lengths(experiment.train)
    if not len(lengths):
        return None
    log.info("measure the speed of this machine" + (f" with hidden_size {size}" if size != USUAL_SIZE else ""))
    make_folder(experiment.output)
    jobs = machine.jobs_of(len(models_of(corpus)))
    with locked(experiment.output):
        for left in experiment.output.glob(f"{SPEED_FOLDER}*"):  # of a killed run
            remove(left)
        with tempfile.TemporaryDirectory(dir=experiment.output, prefix=SPEED_FOLDER) as folder:
            paths = [f"{folder}/{number}" for number in range(1, jobs + 1)]
            arguments = (request, lengths, corpus.sizes, machine.device)
            actions = {f"measure {Path(path).name}": partial(_write_factors, *arguments, path) for path in paths}
            do_all(actions, jobs, machine.address)  # all processes measure at the same time
            factors = [read_record(path, TimeFactors) for path in paths]
            lists = _list_factor(experiment, f"{folder}/nbest")
    return TimeFactors(
        training=sum(factor.training for factor in factors) / jobs,
        forward=sum(factor.forward for factor in factors) / jobs,
        lists=lists,
    )


def _write_factors(request: TrainingRequest, lengths: Integers, corpus: CorpusSize, device: str, path: str) -> None:
    from features.models.speed import measure_model

    began, waited = time.perf_counter(), waiting_time()
    factors = measure_model(request, lengths, corpus, device)
    waiting = (waiting_time() - waited) / (time.perf_counter() - began)
    if waiting > BUSY:
        busy = f"other programs use the cores: this one waited {waiting:.0%} of the time"
        log.info(f"{busy}. The plan assumes that this continues")
    write_json(path, asdict(factors))


def waiting_time() -> float:
    """Return how long this thread has waited for a free core, in seconds, or 0 if the system does not measure it."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # not Linux
        return 0.0


def _list_factor(experiment: Experiment, path: str) -> float:
    """Return the time factor of lists. `path` is that of a file to write."""
    with open_input(experiment.dev.nbest) as whole, open(path, "wb") as part:
        part.writelines(islice(whole, SAMPLE_CANDIDATES))
    lists, metric = replace(experiment.lists("dev"), nbest=[path]), Metric("bleu")
    began = time.perf_counter()
    count = len(lists.read(metric).statistics)
    return (time.perf_counter() - began) / ((READ + METRIC) * count)


def _lengths(train: ParallelFiles) -> Integers:
    """Return the lengths in words (P, 2) of the first sentence pairs of a corpus, without empty and long ones."""
    pairs = islice(parallel_lines(train.source, train.target), SAMPLE)
    lengths = np.array([[len(tokens(line)) for line in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    usable: Integers = lengths[(lengths.min(axis=1) > 0) & (lengths.max(axis=1) <= MAX_SAMPLE_LENGTH)]
    return usable
