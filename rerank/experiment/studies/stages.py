"""The stages of a study: corpora, trainings and perplexities, the cells, and how systems compare."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from features.feature import Resources
from features.models.training.request import ParallelFiles
from features.progress import warn
from moses_io.errors import InputError
from moses_io.folders import InUse, remove
from moses_io.json_files import write_json
from moses_io.streams import numbered_lines, open_output
from moses_io.text import read_parallel, read_references, tokens
from moses_io.weights import weight_files
from rerank.experiment.chain import run_experiment, stages_of, trainings
from rerank.experiment.file import Experiment
from rerank.experiment.sets import SET
from rerank.experiment.stages import Stage
from rerank.experiment.studies.file import Study
from rerank.experiment.studies.grid import Cell, Replicate, corpus_of
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.metrics.significance import replicates_p_value
from rerank.report.changes import MOSES, RERANKED
from rerank.tuning.gain import GAIN


def cut(whole: ParallelFiles, size: int, first: ParallelFiles) -> None:
    """Write the first pairs of a corpus, byte for byte, and their links if there are any."""
    for path, output in zip(whole.files, first.files, strict=True):
        with open_output(output) as stream:
            stream.writelines(line for _, line in islice(numbered_lines(path), size))


def measure(folders: Sequence[str], texts: Mapping[str, ParallelFiles], device: str, output: str) -> None:
    """Write, as JSON, the number of weights of each model, and its perplexities by the names of texts.

    Args:
        folders: of models; of two that were trained together, both.
        texts: what they predict.
        device: `auto`, `cpu` or `cuda`.
        output: file to write.

    Raises:
        InputError: a folder that is no model, or texts that do not fit each other.
    """
    from features.models.device import find_device
    from features.models.scoring.members import Members, parameters_of, perplexity_of

    pairs = {
        name: [(tuple(tokens(one)), tuple(tokens(other))) for one, other in read_parallel(files.source, files.target)]
        for name, files in texts.items()
    }
    measured = []
    for folder in folders:
        model = Members([folder], find_device(device), "measure them one by one")
        perplexities = {name: perplexity_of(model, each) for name, each in pairs.items()}
        measured.append({"parameters": parameters_of(model.models[0]), "perplexity": perplexities})
    write_json(output, measured, indent=1)


Outputs = Mapping[str, Sequence[str]]
"""Files of translations, one a seed, by the name of the system; those of cells that failed are not there."""


def compare(references: Sequence[str], own: Sequence[str], others: Outputs, filters: Filters, output: str) -> None:
    """Write, as JSON, p of the difference in BLEU between a system and each of the others, where both have outputs.

    Raises:
        InputError: files of different lengths.
    """
    answers = filters.references(references)
    metric = Metric("bleu")
    counters = [metric.counter(each) for each in zip(*answers, strict=True)]

    def statistics(paths: Sequence[str]) -> Array:
        read = read_references([*references[:1], *(path for path in paths if Path(path).exists())])[1:]
        counted = [[count(filters(line)) for count, line in zip(counters, lines, strict=True)] for lines in read]
        return np.array(counted, dtype=np.float64)  # (seeds, n, size)

    mine = statistics(own)
    theirs = {name: statistics(paths) for name, paths in others.items()}
    p_values = {
        name: replicates_p_value(metric.formula.score, each, mine)
        for name, each in theirs.items()
        if len(each) and len(mine)
    }
    write_json(output, p_values)


class Comparison(NamedTuple):
    """Systems of one size on one test set, and the file that says whether they differ."""

    size: int
    system: str
    test: str
    path: str


@dataclass(frozen=True)
class Plan:
    """What a study does.

    Attributes:
        replicates: trainings by size and seed.
        cells: experiments by size, seed and system.
        comparisons: of systems of one size.
        stages: which make all of them.
    """

    replicates: list[Replicate]
    cells: list[Cell]
    comparisons: list[Comparison]
    stages: list[Stage]


def plan(study: Study, grid: list[Replicate], experiments: list[Cell], resources: Resources, sharing: bool) -> Plan:
    """Put the stages of replicates and cells, whose folders are there, in the order in which they are done.

    If `sharing`, systems share scores of their models, in a cache that is for the processes of one machine.
    """
    corpora = [_cut(study, size) for size in study.sizes if size != study.pairs]
    trained = [stage for replicate in grid for stage in _trainings(replicate, resources.device)]
    measured = [
        _measure(study, replicate, name, resources.device) for replicate in grid for name in study.experiment.models
    ]
    shared = sharing and len(study.systems) > 1
    ran = [_run(cell, resources, cell.replicate.experiment.result("cache") if shared else "") for cell in experiments]
    compared = [
        _compare(study, size, system, test)
        for size in study.sizes
        for system in study.systems
        for test, files in study.experiment.tests.items()
        if files.reference
    ]
    stages = [*corpora, *trained, *measured, *ran, *(stage for _, stage in compared)]
    return Plan(grid, experiments, [comparison for comparison, _ in compared], stages)


def perplexities(replicate: Replicate, model: str) -> str:
    """Return the path of the perplexities of a model of a replicate."""
    return replicate.experiment.result(f"{model}.perplexity.json")


def folders(replicate: Replicate, model: str) -> dict[str, str]:
    """Return the folder of a model of a replicate, or of both of a pair, by name."""
    request = replicate.experiment.models[model].request
    names = [f"{model}/{part}".removesuffix("/") for part in request.folders]
    return {name: replicate.experiment.model(name) for name in names}


def go_on(name: str, results: Sequence[str], action: Callable[[], object]) -> None:
    """Do something; if its input is at fault, say so and leave no results, so that the other cells go on.

    Raises:
        InUse: another process is at work there or in a folder of results, whose output stays.
    """
    try:
        action()
    except InUse:
        raise
    except InputError as error:
        warn(f"{name} failed: {error}")
        for path in map(Path, results):
            remove(path)


def _going_on(stage: Stage, results: Sequence[str] | None = None) -> Stage:
    """Have a stage that fails leave none of its results, by default its outputs, and others go on."""
    removed = stage.outputs if results is None else results
    return replace(stage, action=partial(go_on, stage.name, removed, stage.action))


def _cut(study: Study, size: int) -> Stage:
    whole, first = study.experiment.train, corpus_of(study, size)
    return Stage(f"cut {size}", whole.files, size, first.files, partial(cut, whole, size, first))


def _trainings(replicate: Replicate, device: str) -> list[Stage]:
    names = replicate.experiment.models
    stages = zip(names, trainings(replicate.experiment, device), strict=True)
    return [_going_on(replace(stage, name=f"train {replicate.name}/{name}")) for name, stage in stages]


def _measure(study: Study, replicate: Replicate, model: str, device: str) -> Stage:
    paths, output, texts = tuple(folders(replicate, model).values()), perplexities(replicate, model), study.texts
    inputs = (*paths, *(path for files in texts.values() for path in files.files))
    action = partial(measure, paths, texts, device, output)
    return _going_on(Stage(f"measure {replicate.name}/{model}", inputs, list(texts), (output,), action, apart=True))


def _run(cell: Cell, resources: Resources, cache: str) -> Stage:
    """Do the experiment of a cell, whose own record says what of it is done, with this cache unless one is named."""
    experiment, own = cell.experiment, replace(resources, cache=resources.cache or cache)
    read = (
        str(cell.path),
        *experiment.files,
        *weight_files(experiment.start),
        *(path for name in experiment.sets for path in _parts(experiment, name)),
    )
    inputs = tuple(map(os.path.normpath, read))  # as the stages that make some of them name them
    action = partial(_run_cell, cell, own)
    named = replace(experiment, output=cell.path.parent)
    outputs = tuple(path for stage in stages_of(named, own, link=True) for path in stage.outputs)
    stage = Stage(f"run {cell.name}", inputs, resources.precision, outputs, action, apart=True)
    return _going_on(stage, _results(named))


def _parts(experiment: Experiment, name: str) -> list[str]:
    """Return the models that an experiment needs, and the folders and files that its features read of a set."""
    requests = experiment.features.values()
    parts = [part for each in requests for part in each.parts if part.partition("/")[0] not in experiment.models]
    code = [path for each in requests for path in (*each.code, *each.programs)]
    models = [experiment.model(model) for model in experiment.models]
    return [*models, *(part.replace(SET, name) for part in parts), *code]


def _run_cell(cell: Cell, resources: Resources) -> None:
    """Do what is not done of a cell; its reranker has links to the models, which all systems share."""
    run_experiment(cell.experiment, resources, link=True)


def _results(experiment: Experiment) -> tuple[str, ...]:
    """Return what the tables read of the results of a cell."""
    reports = [experiment.report(name, "json") for name in experiment.tests]
    translations = [experiment.result(f"{name}.{system}") for name in experiment.tests for system in (MOSES, RERANKED)]
    return (experiment.result(GAIN), *reports, *translations)


def _compare(study: Study, size: int, system: str, test: str) -> tuple[Comparison, Stage]:
    """Compare a system with Moses, and with the first one of the study."""
    references = study.experiment.tests[test].reference
    first, output = next(iter(study.systems)), str(study.output / str(size) / f"{system}+{test}.p.json")
    others = {MOSES: _outputs(study, size, system, f"{test}.{MOSES}")}
    if system != first:
        others[first] = _outputs(study, size, first, f"{test}.{RERANKED}")
    own, filters = _outputs(study, size, system, f"{test}.{RERANKED}"), study.experiment.tuning.filters
    inputs = (*references, *own, *(path for paths in others.values() for path in paths))
    action = partial(compare, references, own, others, filters, output)
    settings = [filters.text, len(study.seeds), list(others)]
    stage = Stage(f"compare {size}/{system}, {test}", inputs, settings, (output,), action, apart=True)
    return Comparison(size, system, test, output), _going_on(stage)


def _outputs(study: Study, size: int, system: str, name: str) -> tuple[str, ...]:
    return tuple(str(study.output / f"{size}/seed-{seed}/{system}/{name}") for seed in study.seeds)
