"""Execution of a study: run the stages that are not up to date, then write tables and plots."""

import importlib.util
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import Resources
from features.models.cost import CorpusSize
from features.progress import log
from moses_io.files.errors import InputError, printable
from moses_io.files.folders import InUse, locked, make_folder, remove
from moses_io.files.json_files import write_json
from moses_io.files.streams import check_plain, numbered_lines, open_output
from moses_io.files.text import ParallelFiles, encode, read_parallel, read_references, tokens, write_text
from moses_io.filters import Filters
from rerank.experiment.chain import stages_of, trainings
from rerank.experiment.checks import check_inputs
from rerank.experiment.clock import Work
from rerank.experiment.costs import SHORT_WORK, Costs, text_size
from rerank.experiment.experiment import Experiment
from rerank.experiment.run import run_experiment
from rerank.experiment.stages import RECORD, Stage, run_stages
from rerank.experiment.studies.file import Study
from rerank.experiment.studies.grid import Cell, Replicate, cells, corpus_of, replicates
from rerank.experiment.studies.results import as_csv, as_json, gather, notes, tables
from rerank.metrics.metric import Metric
from rerank.metrics.significance import replicates_p_value
from rerank.report.changes import MOSES, RERANKED
from rerank.tuning.gain import GAIN

TABLES = ("study.txt", "study.md", "study.json", "study.csv")


def run_study(study: Study, resources: Resources, jobs: int = 1, address: str = "") -> tuple[list[str], list[str], int]:
    """Run a study, write tables and plots, and return the lines of the tables.

    The folder of results gets for each size and seed `SIZE/seed-N/models`, and for each system
    `SIZE/seed-N/SYSTEM/experiment.toml` with the results of this experiment. The tables are `study.txt`, `study.md`,
    `study.json` and `study.csv`. Plots are drawn if matplotlib is installed. A stage whose input is at fault is
    reported and left out of the tables.

    Args:
        study: the study.
        resources: device, precision and cache of features.
        jobs: maximum number of trainings and cells at a time.
        address: address of a Ray cluster, or empty for processes of this machine.

    Returns:
        Lines of the tables, names of the stages that failed, and the number of all stages.

    Raises:
        InputError: an input file is missing or wrong, the folder belongs to no earlier study or is used by another
            process, or a training or a cell was killed.
    """
    _check(study)
    make_folder(study.output)
    with locked(study.output):
        grid = replicates(study)
        experiments = [cell for replicate in grid for cell in cells(study, replicate)]
        for replicate in grid:
            # A cell checks that the folders in its experiment file exist, before models are trained.
            make_folder(Path(replicate.experiment.result("models")))
        if not (study.output / RECORD).exists():
            _check_free(study.output, experiments)
        for cell in experiments:
            make_folder(cell.path.parent)
            write_text(str(cell.path), cell.text)
        stages = study_stages(study, grid, experiments, resources, sharing=not address)
        run_stages(stages, study.output / RECORD, jobs, address)
        failed = [stage.name for stage in stages if not all(Path(path).exists() for path in stage.outputs)]
        return _write_results(study, failed), failed, len(stages)


def _check(study: Study) -> None:
    """Raise `InputError` for faults that can be found before training."""
    if study.systems:
        check_inputs(study.experiment)
    for files in (study.experiment.train, *study.texts.values()):
        for path in files.files:
            check_plain(path)


def _check_free(output: Path, experiments: Sequence[Cell]) -> None:
    """Raise `InputError` if files of the user have the paths of tables or cells. Files of a killed study may stay."""
    others = {output / name: b"" for name in TABLES} | {cell.path: encode(cell.text) for cell in experiments}
    for path, content in others.items():
        if os.path.lexists(path) and not (path.is_file() and path.read_bytes() == content):
            raise InputError(f"{path}: already exists and is not from an earlier run. Remove or rename it")


def _write_results(study: Study, failed: list[str]) -> list[str]:
    """Write tables and plots, and return the lines of the plain-text tables."""
    results = gather(study)
    shown = tables(study, results)
    plain = [line for table in shown for line in (*table.plain(), "")]
    lines = list(map(printable, [*plain, *notes(study)]))
    marked = [line for table in shown for line in (*table.markdown(), "")]
    marked_lines = map(printable, [*marked, *notes(study)])
    texts = ("".join(f"{line}\n" for line in each) for each in (lines, marked_lines))
    for name, text in zip(TABLES, (*texts, as_json(study, results, failed), as_csv(results)), strict=True):
        write_text(str(study.output / name), text)
    if importlib.util.find_spec("matplotlib") is None:
        log.info("only tables are written: plots need matplotlib (pip install 'moses-rerank[plot]')")
    else:
        from rerank.experiment.studies.plots import draw

        for path in draw(study, results):
            log.info(f"plot: {path}")
    return lines


def cut(whole: ParallelFiles, size: int, first: ParallelFiles) -> None:
    """Write the first `size` pairs of a corpus with their word alignments, if any. Lines are copied byte for byte."""
    for path, output in zip(whole.files, first.files, strict=True):
        with open_output(output) as stream:
            stream.writelines(line for _, line in itertools.islice(numbered_lines(path), size))


def measure(folders: Sequence[str], texts: Mapping[str, ParallelFiles], device: str, output: str) -> None:
    """Write the number of parameters and the perplexities of each model, as JSON.

    Args:
        folders: model folders, or two for a pair of models that train together.
        texts: parallel texts by name.
        device: `auto`, `cpu` or `cuda`.
        output: the file to write.

    Raises:
        InputError: a folder that is no model, or texts of different lengths.
    """
    from features.models.device import find_device
    from features.models.scoring.members import Members, parameters_of, perplexity_of

    pairs = {
        name: [(tuple(tokens(one)), tuple(tokens(other))) for one, other in read_parallel(files.source, files.target)]
        for name, files in texts.items()
    }
    measured = []
    for folder in folders:
        model = Members([folder], find_device(device), "measure each model separately")
        perplexities = {name: perplexity_of(model, each) for name, each in pairs.items()}
        measured.append({"parameters": parameters_of(model.models[0]), "perplexity": perplexities})
    write_json(output, measured, indent=1)


Outputs = Mapping[str, Sequence[str]]
"""Files of translations, one for each seed, by system. Files of cells that failed do not exist."""


def compare(references: Sequence[str], outputs: Sequence[str], others: Outputs, filters: Filters, output: str) -> None:
    """Write the p-value of the difference in BLEU between a system and each other system, as JSON.

    Systems without outputs are left out.

    Args:
        references: files of references.
        outputs: outputs of the system, one for each seed.
        others: outputs of the other systems.
        filters: text filters that apply before the metric.
        output: the file to write.

    Raises:
        InputError: files of different lengths.
    """
    reference_lines = filters.references(references)
    metric = Metric("bleu")
    counters = [metric.counter(each) for each in zip(*reference_lines, strict=True)]

    def statistics(paths: Sequence[str]) -> Array:
        # The first reference is read again only to compare the numbers of lines.
        read = read_references([*references[:1], *(path for path in paths if Path(path).exists())])[1:]
        counted = [[count(filters(line)) for count, line in zip(counters, lines, strict=True)] for lines in read]
        return np.array(counted, dtype=np.float64)  # (seeds, n, size)

    system_statistics = statistics(outputs)
    other_statistics = {name: statistics(paths) for name, paths in others.items()}
    p_values = {
        name: replicates_p_value(metric.formula.score, each, system_statistics)
        for name, each in other_statistics.items()
        if len(each) and len(system_statistics)
    }
    write_json(output, p_values)


def study_stages(
    study: Study, grid: list[Replicate], experiments: list[Cell], resources: Resources, sharing: bool
) -> list[Stage]:
    """Return the stages of all replicates and cells in order. Their folders must exist.

    If `sharing`, the systems of a replicate share a cache of model scores, which works only on one machine.
    """
    stages = [_cut(study, size) for size in study.sizes if size != study.pairs]
    stages += [stage for replicate in grid for stage in _trainings(study, replicate, resources)]
    for replicate in grid:
        stages += [_measure(study, replicate, model, resources.device) for model in study.experiment.models]
    for cell in experiments:
        shared = cell.replicate.experiment.result("cache") if sharing and len(study.systems) > 1 else ""
        stages.append(_run(study, cell, replace(resources, cache=resources.cache or shared)))
    cases = itertools.product(study.sizes, study.systems, study.tests)
    return stages + [_compare(study, size, system, test) for size, system, test in cases]


def run_or_remove(name: str, results: Sequence[str], action: Callable[[], object]) -> None:
    """Run a stage. If its input is at fault, log the reason and remove its results, so that other cells can run.

    Raises:
        InUse: another process uses the folder. The results stay.
    """
    try:
        action()
    except InUse:
        raise
    except InputError as error:
        log.warning(f"{name} failed: {error}")
        for path in map(Path, results):
            remove(path)


def _fault_tolerant(stage: Stage, results: Sequence[str]) -> Stage:
    """Return a stage that leaves no results if it fails, so that other stages can run. See `run_or_remove`."""
    return replace(stage, action=partial(run_or_remove, stage.name, results, stage.action))


def _cut(study: Study, size: int) -> Stage:
    whole, first = study.experiment.train, corpus_of(study, size)
    return Stage(f"cut {size}", whole.files, size, first.files, partial(cut, whole, size, first), work=SHORT_WORK)


def _corpus_size(study: Study, size: int) -> CorpusSize:
    """Return the size of the first pairs of the corpus, in files that may not exist yet."""
    source, target = (text_size(path) for path in study.experiment.train.files[:2])
    return source.part(size / study.pairs), target.part(size / study.pairs)


def _trainings(study: Study, replicate: Replicate, resources: Resources) -> list[Stage]:
    names = replicate.experiment.models
    costs = Costs(replicate.experiment, resources.device, _corpus_size(study, replicate.size))
    made = trainings(replicate.experiment, resources, costs)
    stages = zip(names, made, strict=True)
    return [
        _fault_tolerant(replace(stage, name=f"train {replicate.name}/{name}"), stage.outputs) for name, stage in stages
    ]


def _measure(study: Study, replicate: Replicate, model: str, device: str) -> Stage:
    paths = list(study.folders(replicate.size, replicate.seed, model).values())
    output, texts = study.perplexities(replicate.size, replicate.seed, model), study.texts
    inputs = (*paths, *(path for files in texts.values() for path in files.files))
    action = partial(measure, paths, texts, device, output)
    name = f"measure {replicate.name}/{model}"
    stage = Stage(name, inputs, list(texts), (output,), action, separate=True, work=SHORT_WORK)
    return _fault_tolerant(stage, stage.outputs)


def _run(study: Study, cell: Cell, resources: Resources) -> Stage:
    """Return the stage that runs the experiment of a cell, which has its own record of stages.

    Its reranker has links to the models, because all systems share them.
    """
    experiment = cell.experiment
    stages = stages_of(experiment, resources, link=True, corpus=_corpus_size(study, cell.replicate.size))
    work = Work("run", sum(stage.work.seconds for stage in stages if stage.work))
    made = [path for stage in stages for path in stage.outputs]
    read = dict.fromkeys(path for stage in stages for path in stage.inputs if path not in made)
    inputs = (str(cell.path), *map(os.path.normpath, read))  # normalized like the outputs of the stages that make them
    action = partial(run_experiment, experiment, resources, link=True)
    stage = Stage(f"run {cell.name}", inputs, resources.precision, made, action, separate=True, work=work)
    return _fault_tolerant(stage, _results(experiment))


def _results(experiment: Experiment) -> tuple[str, ...]:
    """Return the paths of the results of a cell that the tables use."""
    reports = [experiment.report(name, "json") for name in experiment.tests]
    translations = [experiment.result(f"{name}.{system}") for name in experiment.tests for system in (MOSES, RERANKED)]
    return (experiment.result(GAIN), *reports, *translations)


def _compare(study: Study, size: int, system: str, test: str) -> Stage:
    """Return the stage that compares a system with Moses, and with the first system of the study."""
    references, filters = study.experiment.tests[test].reference, study.experiment.tuning.filters
    first, output = next(iter(study.systems)), study.p_values(size, system, test)
    outputs = _outputs(study, size, system, f"{test}.{RERANKED}")
    others = {MOSES: _outputs(study, size, system, f"{test}.{MOSES}")}
    if system != first:
        others[first] = _outputs(study, size, first, f"{test}.{RERANKED}")
    inputs = (*references, *outputs, *(path for paths in others.values() for path in paths))
    settings = [filters.text, len(study.seeds), list(others)]
    action = partial(compare, references, outputs, others, filters, output)
    name = f"compare {size}/{system}, {test}"
    stage = Stage(name, inputs, settings, (output,), action, separate=True, work=SHORT_WORK)
    return _fault_tolerant(stage, stage.outputs)


def _outputs(study: Study, size: int, system: str, name: str) -> tuple[str, ...]:
    return tuple(str(study.replicate(size, seed) / system / name) for seed in study.seeds)
