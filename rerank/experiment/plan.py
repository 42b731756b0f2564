"""The plan of a run: which models train, and how long, so that the run ends within the given minutes."""

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from features.arrays import Integers
from features.feature import Resources
from features.models.cost import Speed, Speeds, TextSize
from features.models.training.request import TrainingRequest
from features.progress import log
from moses_io.files.errors import InputError
from moses_io.files.json_files import read_record, write_json
from moses_io.files.text import ParallelFiles, parallel_lines, tokens
from rerank.experiment.chain import stages_of
from rerank.experiment.costs import Costs
from rerank.experiment.file import Experiment, Unplanned
from rerank.experiment.recipe import (
    MODELS,
    SCOPES,
    SMALL_MODELS,
    TWICE,
    Corpus,
    Recipe,
    Scope,
    find_depth,
    find_recipe,
    inspect_corpus,
    is_small,
)
from rerank.experiment.stages import expected_seconds
from rerank.experiment.workers import Workers, jobs_for

PLAN = "plan.json"
"""File in the folder of results with the plan of its runs."""

MARGIN = 0.9
"""Part of the minutes that is planned. The rest is for what takes longer than expected."""

START = 15.0
"""Seconds from the start of a run to its first stage, without the time to check lists."""

SLOW = Speeds(Speed(2, 2), Speed(2, 2))
"""Speed of a slow machine. A run that is short even there needs no measurement."""

SAMPLE, LONGEST = 4_000, 50
"""Sentence pairs on which the speed is measured, and their maximum length in words."""

Epochs = dict[str, float]
"""Epochs of models by name. A transformer reads the corpus `TWICE` as often."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes:
        minutes: time of the run that was asked for.
        corpus: the training corpus.
        epochs: epochs of each model.
        scope: what the run does besides training.
        speeds: speed of the machine.
        jobs: number of models that train at a time.
        seconds: expected time of the run.
        use: expected seconds in which the reranker processes 1,000 sentences.
    """

    minutes: float
    corpus: Corpus
    epochs: Epochs
    scope: Scope
    speeds: Speeds
    jobs: int
    seconds: float
    use: float

    @property
    def is_full(self) -> bool:
        """Whether more time would change nothing."""
        most, names = find_depth(self.corpus).most, SMALL_MODELS if is_small(self.corpus) else MODELS
        return self.scope == SCOPES[0] and all(self.epochs.get(name, 0) + 1e-6 >= most for name in names)

    @property
    def recipe(self) -> Recipe:
        """Models, settings and features."""
        return find_recipe(self.corpus, self.epochs, self.scope)


def find_plan(experiment: Experiment, unplanned: Unplanned, resources: Resources, jobs: int) -> Plan:
    """Return the plan in the folder of results if it is for the same corpus and minutes, otherwise a new one.

    Args:
        experiment: an experiment whose models are still to be chosen.
        unplanned: its tables.
        resources: device, precision and cache of features.
        jobs: maximum number of models that train at a time.

    Raises:
        InputError: the corpus or the earlier plan cannot be read, or a label of the shortlist is not in the plan.
    """
    corpus, path = inspect_corpus(experiment.train, experiment.dev.texts), experiment.output / PLAN
    if path.exists():
        plan = _read_plan(path)
        if (plan.minutes, plan.corpus) == (unplanned.minutes, corpus):
            log.info(f"{path}: the plan of an earlier run. Remove it for a new one")
            return plan
    if make_plan(unplanned, corpus, resources, jobs, SLOW).is_full:
        return make_plan(unplanned, corpus, resources, jobs, Speeds())
    speeds = measure_speeds(experiment.train, corpus, resources.device, jobs)
    return make_plan(unplanned, corpus, resources, jobs, speeds)


def assumed_plan(experiment: Experiment, unplanned: Unplanned) -> Plan:
    """Return a plan for an assumed speed of the machine, without measuring it. Arguments are as in `find_plan`."""
    corpus, resources = inspect_corpus(experiment.train, experiment.dev.texts), Resources()
    return make_plan(unplanned, corpus, resources, jobs_for(len(MODELS), resources.device), Speeds())


def make_plan(unplanned: Unplanned, corpus: Corpus, resources: Resources, jobs: int, speeds: Speeds) -> Plan:
    """Return the plan for a machine of some speed."""
    sizes = _size(corpus, "source"), _size(corpus, "target")

    def expected(epochs: Epochs, scope: Scope) -> tuple[float, float]:
        planned = unplanned.with_recipe(find_recipe(corpus, epochs, scope))
        costs = Costs(planned, resources.device, sizes, speeds)
        stages = stages_of(planned, resources, corpus=sizes, speeds=speeds)
        checks = sum(costs.reading(name).seconds for name in planned.sets)
        return START + checks + expected_seconds(stages, jobs), costs.use()

    most = 60 * unplanned.minutes * MARGIN
    epochs, scope = search(corpus, lambda epochs, scope: expected(epochs, scope)[0] <= most)
    seconds, use = expected(epochs, scope)
    return Plan(unplanned.minutes, corpus, epochs, scope, speeds, jobs, seconds, use)


def search(corpus: Corpus, fits: Callable[[Epochs, Scope], bool]) -> tuple[Epochs, Scope]:
    """Return epochs of models, and a scope, that fit into the time.

    The scope is the largest one in which two models can have the least epochs, otherwise the smallest one. In it, as
    many models as possible get the least epochs, in the order in which they help. Then each gets more, one step at a
    time. If not even one model fits, it gets fewer epochs.
    """
    depth, epochs = find_depth(corpus), Epochs()
    two = dict.fromkeys(SMALL_MODELS, depth.least)
    scope = next((each for each in SCOPES if fits(two, each)), SCOPES[-1])
    for name in SMALL_MODELS if is_small(corpus) else MODELS:
        if not fits(epochs | {name: depth.least}, scope):
            break
        epochs[name] = depth.least
    if not epochs:
        shorter = np.arange(depth.least, 0, -depth.step)[1:].tolist()
        epochs = next((each for each in ({MODELS[0]: count} for count in shorter) if fits(each, scope)), epochs)
    growing = [name for name, count in epochs.items() if count >= depth.least]
    while growing:
        for name in list(growing):
            longer = epochs | {name: min(depth.most, epochs[name] + depth.step)}
            if longer[name] > epochs[name] and fits(longer, scope):
                epochs = longer
            else:
                growing.remove(name)
    return epochs, scope


def apply_plan(unplanned: Unplanned, plan: Plan) -> Experiment:
    """Return the experiment with the models of a plan, and log the plan."""
    lines = plan_lines(plan)
    for line in lines:
        log.info(line)
    return unplanned.with_recipe(plan.recipe, lines)


def plan_lines(plan: Plan) -> list[str]:
    """Return lines that describe a plan."""
    models = plan.recipe.models
    if not models:
        return [f"{plan.minutes:g} minutes are too short to train a model on this corpus"]
    return [
        f"planned for {plan.minutes:g} minutes: {len(models)} models, about {plan.seconds / 60:.0f} minutes, and about "
        f"{plan.use:.0f} s for 1,000 sentences when the reranker is applied",
        *(f"{name}: {settings['preset']}, {_read(plan, name):.3g} epochs" for name, settings in models.items()),
    ]


def _read(plan: Plan, name: str) -> float:
    """Return how often a model reads the corpus."""
    return plan.epochs[name] * (TWICE if name.endswith("-2") else 1)


def write_plan(plan: Plan, folder: Path) -> None:
    """Write a plan into the folder of results."""
    write_json(str(folder / PLAN), asdict(plan), indent=1)


def _read_plan(path: Path) -> Plan:
    try:
        return read_record(path, Plan)
    except InputError as error:
        raise InputError(f"{error}. Remove it for a new plan") from None


def _size(corpus: Corpus, name: str) -> TextSize:
    side = getattr(corpus, name)
    return TextSize(corpus.pairs, side.words, side.vocabulary)


def measure_speeds(train: ParallelFiles, corpus: Corpus, device: str, jobs: int) -> Speeds:
    """Return the speed of this machine while `jobs` models train."""
    models = find_recipe(corpus, dict.fromkeys(SMALL_MODELS if is_small(corpus) else MODELS, 1.0)).models
    requests: dict[str, TrainingRequest] = {}
    for table in models.values():
        settings = {key: value for key, value in table.items() if key not in _OTHERS}
        request = TrainingRequest(table["preset"], settings=settings)
        requests.setdefault("recurrent" if request.settle()[0].recurrent else "transformer", request)
    lengths = _lengths(train)
    if not len(lengths):
        return Speeds()
    log.info("measure the speed of this machine")
    with tempfile.TemporaryDirectory() as folder, Workers(min(jobs, len(requests))) as pool:
        for kind, request in requests.items():
            if not pool.free:
                pool.wait()
            path = f"{folder}/{kind}"
            pool.start(kind, partial(_write_speed, request, lengths, _size(corpus, "target"), device, path))
        for _ in range(pool.jobs):
            pool.wait()
        speeds = {kind: read_record(f"{folder}/{kind}", Speed) for kind in requests}
    return Speeds(**speeds)


_OTHERS = ("preset", "candidates", "translate_with", "right_to_left", "backward")
"""Keys of a model that are no settings of its training."""


def _write_speed(request: TrainingRequest, lengths: Integers, predicted: TextSize, device: str, path: str) -> None:
    from features.models.speed import measure_speed

    write_json(path, asdict(measure_speed(request, lengths, predicted, device)))


def _lengths(train: ParallelFiles) -> Integers:
    """Return the lengths in words (P, 2) of the first sentence pairs of a corpus, without empty and long ones."""
    pairs = islice(parallel_lines(train.source, train.target), SAMPLE)
    lengths = np.array([[len(tokens(line)) for line in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    usable: Integers = lengths[(lengths.min(axis=1) > 0) & (lengths.max(axis=1) <= LONGEST)]
    return usable
