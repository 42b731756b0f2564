"""A run of an experiment: plan, checks, and the stages that are not up to date."""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from features.feature import Resources
from features.progress import log
from moses_io.files.errors import InputError
from moses_io.files.folders import locked, make_folder
from moses_io.files.json_files import read_record
from moses_io.files.text import read_lines
from rerank.experiment.chain import ingredients, stages_of
from rerank.experiment.checks import check_inputs, try_features
from rerank.experiment.experiment import Experiment, Unplanned
from rerank.experiment.filtering import filter_inputs
from rerank.experiment.machine import Machine
from rerank.experiment.plan import Plan, apply_plan, find_plan, plan_lines, usable_plan, with_all_models, write_plan
from rerank.experiment.stages import RECORD, Stage, run_stages
from rerank.reranker.make import gains
from rerank.systems.comparison import COMPARISON, Comparison


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
    - `filtered`: filtered copies of all texts and lists, if the experiment has input filters
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
    inputs = experiment.files
    if experiment.input_filters.text:
        experiment = filter_inputs(experiment)
    everything, machine = with_all_models(experiment), Machine(resources.device, jobs, address)
    plan: Plan | None = None
    revise: Callable[[Stage], Sequence[Stage] | None] | None = None
    check_inputs(everything)
    try_features(everything, resources)
    if experiment.unplanned:
        plan = find_plan(experiment, machine)
        # The stored plan keeps the translations, for a later run without such a feature.
        usable = usable_plan(experiment, plan)
        planned = _Planned(experiment.unplanned, usable, experiment.output / COMPARISON, resources, link)
        for line in plan_lines(usable):
            log.info(line)
        experiment, stages, revise = planned.experiment, planned.stages(), planned.revise
    else:
        stages = stages_of(experiment, resources, link)
    _make_folder(experiment, stages, [*inputs, *experiment.files])
    with locked(experiment.output):
        if plan:
            write_plan(plan, experiment.output)
        run_stages(stages, experiment.output / RECORD, machine.jobs_of(len(experiment.models)), address, revise)
    reports = {name: read_lines(experiment.report(name, "txt")) for name in experiment.tests}
    if len(reports) > 1:
        return [line for name, report in reports.items() for line in ("", f"{name}:", *report)][1:]
    return next(iter(reports.values())) if reports else gains(ingredients(experiment, link))


@dataclass
class _Planned:
    """Stages of a planned run. They depend on the comparison of translations by a stage of this or an earlier run.

    Attributes:
        unplanned: tables of the experiment.
        plan: the plan.
        path: path of the comparison.
        resources: device, precision and cache of features.
        link: whether the reranker gets links to models and tables instead of copies.
        comparison: the comparison, or None if there is none yet.
    """

    unplanned: Unplanned
    plan: Plan
    path: Path
    resources: Resources
    link: bool
    comparison: Comparison | None = field(init=False)

    def __post_init__(self) -> None:
        self.comparison = self._read()

    @property
    def experiment(self) -> Experiment:
        """The experiment with its models and features."""
        return apply_plan(self.unplanned, self.plan, self.comparison)

    def stages(self) -> list[Stage]:
        """Return all stages. If models may add translations, those are compared with Moses' first."""
        compared = apply_plan(self.unplanned, self.plan).own_candidates
        known = (self.plan.corpus.sizes, self.plan.factors)
        return stages_of(self.experiment, self.resources, self.link, *known, compared)

    def revise(self, stage: Stage) -> list[Stage] | None:
        """Return other stages if this stage changed the comparison, as `run_stages` expects."""
        before = self.comparison
        if str(self.path) not in stage.outputs:
            return None
        self.comparison = self._read()
        return None if self.comparison == before else self.stages()

    def _read(self) -> Comparison | None:
        """Return the comparison in the folder of results, or None if it is missing or damaged."""
        with contextlib.suppress(InputError):
            return read_record(self.path, Comparison)
        return None


def _make_folder(experiment: Experiment, stages: list[Stage], files: Iterable[str]) -> None:
    """Make the folder of results. Raise `InputError` if a stage would overwrite one of the files."""
    inputs = {os.path.realpath(path) for path in files}
    for path in (path for stage in stages for path in stage.outputs):
        if os.path.realpath(path) in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it. Name another output")
    models = experiment.output / "models"
    if models.is_symlink():
        raise InputError(f"{models}: a symbolic link, expected a folder. Remove it")
    make_folder(experiment.output if experiment.trained_models else models)
