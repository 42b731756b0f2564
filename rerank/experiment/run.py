"""A run of an experiment: plan, checks, and the stages that are not up to date."""

import os
from collections.abc import Sequence
from dataclasses import replace

from features.feature import Resources
from moses_io.files.errors import InputError
from moses_io.files.folders import locked, make_folder
from moses_io.files.text import read_lines
from rerank.experiment.chain import ingredients, stages_of
from rerank.experiment.checks import check_inputs, try_features
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import with_recipe
from rerank.experiment.plan import Machine, Plan, apply_plan, find_plan, plan_lines, with_all_models, write_plan
from rerank.experiment.stages import RECORD, Stage, run_stages
from rerank.reranker.make import gains
from rerank.systems.comparison import translate_well


def run_experiment(
    experiment: Experiment, resources: Resources, jobs: int | None = 1, link: bool = False, address: str = ""
) -> list[str]:
    """Run the stages that are not up to date, and return the lines of the reports.

    If the experiment names no models, they are chosen for its minutes (`find_plan`). The folder of results gets:

    - the models, the scored lists and `weights.ini`
    - `confidence.json`: fitted sentence-level confidence estimation (quality estimation)
    - `ablation.txt` and `ablation.json`: contribution of each feature
    - for each test set `NAME.moses`, `NAME.reranked` and `NAME.report.txt`, `.html` and `.json`. The reports of an
      unnamed test set are `report.txt` and so on
    - for each test set `NAME.attention.npz`, if a feature uses a model with attention: the attention on both
      translations
    - `reranker`: the folder that can be applied to new lists
    - `plan.json` and `experiment.toml`, if models were chosen: the plan, and the experiment file with all models and
      features

    Args:
        experiment: the experiment.
        resources: device, precision and cache of features.
        jobs: maximum number of models and features at a time. None: as many models as suit the device.
        link: whether the reranker gets links to models and tables instead of copies.
        address: address of a Ray cluster, or empty for processes of this machine.

    Returns:
        Lines of the reports. Without test sets, they are lines of tuning and ablation.

    Raises:
        InputError: an input or a setting is at fault, a stage failed, or another process uses the folder of results.
    """
    everything, plan, machine = with_all_models(experiment), None, Machine(resources.device, jobs, address)
    check_inputs(everything)
    try_features(everything, resources)
    unplanned = experiment.unplanned
    if unplanned:
        plan = find_plan(experiment, unplanned, machine)
        experiment = apply_plan(unplanned, plan)
    known = (plan.sizes, plan.factors) if plan else (None, None)
    stages = stages_of(experiment, resources, link, *known)
    _make_folder(experiment, stages)
    record, jobs = experiment.output / RECORD, machine.jobs_of(len(experiment.models))
    with locked(experiment.output):
        if plan:
            write_plan(plan, experiment.output)
        if unplanned and plan and experiment.candidates and not plan.compared:
            run_stages(stages, record, jobs, address, first=_count_trainings(stages))
            plan = _compare(experiment, plan, resources)
            write_plan(plan, experiment.output)
            experiment = with_recipe(unplanned, plan.recipe, plan_lines(plan))
            stages = stages_of(experiment, resources, link, *known)
        run_stages(stages, record, jobs, address)
    reports = {name: read_lines(experiment.report(name, "txt")) for name in experiment.tests}
    if len(reports) > 1:
        return [line for name, report in reports.items() for line in ("", f"{name}:", *report)][1:]
    return next(iter(reports.values())) if reports else gains(ingredients(experiment, link))


def _count_trainings(stages: Sequence[Stage]) -> int:
    """Return the number of stages up to the last training."""
    return 1 + max(number for number, stage in enumerate(stages) if stage.work and stage.work.kind == "train")


def _compare(experiment: Experiment, plan: Plan, resources: Resources) -> Plan:
    """Return the plan without translations of its models in the lists if they are much worse than Moses'."""
    dev = experiment.dev
    files = (dev.nbest, dev.source, dev.reference)
    well = translate_well(experiment.candidates, *files, experiment.tuning.filters, resources)
    return replace(plan, scope=replace(plan.scope, translations=well), compared=True)


def _make_folder(experiment: Experiment, stages: list[Stage]) -> None:
    """Make the folder of results. Raise `InputError` if a stage would overwrite an input of the experiment."""
    inputs = {os.path.realpath(path) for path in experiment.files}
    for path in (path for stage in stages for path in stage.outputs):
        if os.path.realpath(path) in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it. Name another output")
    models = experiment.output / "models"
    if models.is_symlink():
        raise InputError(f"{models}: a symbolic link, expected a folder. Remove it")
    make_folder(experiment.output if experiment.trained_models else models)
