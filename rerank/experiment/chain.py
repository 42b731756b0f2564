"""The whole chain of an experiment: train, score, tune, rerank, evaluate."""

import os
import shutil
from dataclasses import asdict
from functools import partial

from features.feature import Resources
from features.models.training.request import TrainingFiles, train_model
from features.request import runs_code, together
from moses_io.errors import InputError
from moses_io.folders import locked, make_folder
from moses_io.text import read_lines, write_text
from moses_io.weights import weight_files
from rerank.confidence.file import CONFIDENCE
from rerank.experiment.checks import RECORD, check_inputs, try_features
from rerank.experiment.file import Experiment, TuningEntry
from rerank.experiment.models import ModelEntry
from rerank.experiment.outcome import ablate, attend, choose, confide, evaluate, requests_of, scored_lists
from rerank.experiment.sets import CHOOSE, NbestFiles
from rerank.experiment.stages import Stage, make_or_go_on, run_stages
from rerank.lists.append import join_features, write_features
from rerank.reranker.make import Ingredients, gains, make_reranker
from rerank.systems.translations import merge_translations
from rerank.tuning.gain import FORMAT, GAIN, write_gain
from rerank.tuning.tune import tune
from rerank.tuning.tuning_set import Lists


def run_experiment(
    experiment: Experiment, resources: Resources, jobs: int = 1, link: bool = False, address: str = ""
) -> list[str]:
    """Do what is not done yet, `jobs` models and features at a time, and return the lines of the reports.

    These are made by the Ray cluster of an address, if there is one.

    The folder of results holds the models, the scored lists, `weights.ini`, `confidence.json` (how good choices are),
    `ablation.txt` and `ablation.json` (what each feature is worth); of each test set NAME `NAME.moses`,
    `NAME.reranked`, where there are models with attention `NAME.attention.npz` (theirs while they read both), and
    `NAME.report.` with `txt`, `html` (every sentence, and why it changed) and `json`, of the one without a name
    `report.`; and `reranker`, the folder that is applied to new lists, with models and tables copied into it, or linked
    to. Without test sets the lines are those of tuning and ablation.
    """
    check_inputs(experiment)
    try_features(experiment, resources)
    stages = stages_of(experiment, resources, link)
    _make_folder(experiment, stages)
    with locked(experiment.output):
        run_stages(stages, experiment.output / RECORD, jobs, address)
    reports = {name: read_lines(experiment.report(name, "txt")) for name in experiment.tests}
    if len(reports) > 1:
        return [line for name, report in reports.items() for line in ("", f"{name}:", *report)][1:]
    return next(iter(reports.values())) if reports else gains(_ingredients(experiment, link))


def _make_folder(experiment: Experiment, stages: list[Stage]) -> None:
    """Make the folder of results, unless something in it that the experiment reads would be lost."""
    inputs = {os.path.realpath(path) for path in experiment.files}
    for path in (path for stage in stages for path in stage.outputs):
        if os.path.realpath(path) in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it; name another output")
    models = experiment.output / "models"
    if models.is_symlink():
        raise InputError(f"{models}: a symbolic link, expected a folder; remove it")
    make_folder(experiment.output if experiment.trained else models)


def stages_of(experiment: Experiment, resources: Resources, link: bool = False) -> list[Stage]:
    """Return all that is to be done, in order; the reranker links to what it needs, or copies it."""
    device = resources.device
    models = [] if experiment.trained else trainings(experiment, device)
    to_widen = experiment.sets if experiment.candidates else {}
    widened = [_widen(experiment, name, files, resources) for name, files in to_widen.items()]
    scores = [stage for name, files in experiment.sets.items() for stage in _score(experiment, name, files, resources)]
    choices = [stage for name, files in experiment.tests.items() for stage in choose(experiment, name, files)]
    read = [stage for name, files in experiment.tests.items() for stage in attend(experiment, name, files, device)]
    reports = [evaluate(experiment, name, files) for name, files in experiment.tests.items()]
    spelled = [_spell_out(experiment)] if experiment.text else []
    tuned = [_tune(experiment), confide(experiment)]
    after = [*choices, *ablate(experiment), *read, *reports, _keep(experiment, link)]
    return [*spelled, *models, *widened, *scores, *tuned, *after]


def _spell_out(experiment: Experiment) -> Stage:
    """Write the experiment as a file that names the models and features which were chosen for it."""
    output = experiment.result("experiment.toml")
    write = partial(write_text, output, experiment.text)
    return Stage("choose models and features", (), experiment.text, (output,), write)


def trainings(experiment: Experiment, device: str) -> list[Stage]:
    """Return a stage for each model; of two that train together, one."""
    return [_train(experiment, name, entry, device) for name, entry in experiment.models.items()]


def _train(experiment: Experiment, name: str, entry: ModelEntry, device: str) -> Stage:
    dev = experiment.dev.texts
    files = TrainingFiles(corpus=entry.request.reads(experiment.train), dev=dev)
    folder, start = experiment.model(name), experiment.model(entry.start) if entry.start else ""
    settings = {
        "preset": entry.request.preset,
        "backward": entry.request.backward,
        "right-to-left": entry.request.right_to_left,
        "settings": [asdict(part) for part in entry.request.settle()],
    }
    inputs = (*files.corpus.files, *dev.files, *([start] if start else []))
    train = partial(train_model, entry.request, files, device=device, start=start, resume=True)
    action = partial(make_or_go_on, folder, inputs, settings, train)
    return Stage(f"train {name}", inputs, settings, (folder,), action, apart=True)


def _widen(experiment: Experiment, name: str, files: NbestFiles, resources: Resources) -> Stage:
    """Return the stage that adds candidates of models to a list."""
    requests, output = experiment.candidates, experiment.nbest(name)
    settings = [[each.identity for each in requests], resources.precision]
    inputs = (files.nbest, files.source, *(folder for each in requests for folder in each.folders))
    action = partial(merge_translations, files.nbest, files.source, requests, output, resources)
    return Stage(f"translate {name}", inputs, settings, (output,), action, apart=True)


def _score(experiment: Experiment, name: str, files: NbestFiles, resources: Resources) -> list[Stage]:
    """Return a stage for each feature, or for those that read the same models, and one that joins them to the list."""
    if not experiment.features:
        return []
    stages, nbest = [], experiment.nbest(name)
    for group in together(requests_of(experiment, name)):
        output = experiment.result(f"{name}.{group[0].label}.features.gz")
        parts = [part for request in group for part in request.files]
        settings = [
            [request.identity for request in group],
            resources.precision if group[0].readers else "",
        ]
        action = partial(write_features, nbest, files.source, group, output, resources)
        inputs = (nbest, files.source, *parts)
        stages.append(Stage(f"score {name} {group[0].label}", inputs, settings, (output,), action, apart=True))
    columns, output = [stage.outputs[0] for stage in stages], experiment.result(f"{name}.nbest.gz")
    action = partial(join_features, nbest, columns, output)
    return [*stages, Stage(f"join {name}", (nbest, *columns), None, (output,), action, apart=True)]


def _tune(experiment: Experiment) -> Stage:
    start, entry, weights = experiment.start, experiment.tuning, experiment.result("weights.ini")
    lists = scored_lists(experiment, "dev")
    settings = [entry.tuning.signature, entry.tuning.metric, lists.signature, asdict(entry.caution), FORMAT]
    other = scored_lists(experiment, CHOOSE) if experiment.choose else None
    outputs = (weights, experiment.result(GAIN))
    action = partial(_tune_and_tell, lists, start, entry, other, outputs)
    read = [path for each in (lists, other) if each for path in (*each.nbest, *each.references)]
    return Stage("tune", (*read, *weight_files(start)), settings, outputs, action)


def _tune_and_tell(lists: Lists, start: str, entry: TuningEntry, other: Lists | None, outputs: tuple[str, str]) -> None:
    """Tune, and keep what was gained for the report."""
    weights, gain = outputs
    write_gain(gain, tune(lists, start, entry.tuning, weights, entry.caution, other))


def _ingredients(experiment: Experiment, link: bool) -> Ingredients:
    requests = requests_of(experiment)
    return Ingredients(
        requests=tuple(requests),
        weights=experiment.result("weights.ini"),
        corpus=experiment.train,
        dev=experiment.dev.source,
        reports=tuple((name, experiment.report(name, "txt")) for name in experiment.tests),
        ablation=experiment.result("ablation.txt") if requests else "",
        confidence=experiment.result(CONFIDENCE),
        candidates=experiment.candidates,
        link=link,
    )


def _keep(experiment: Experiment, link: bool) -> Stage:
    """Make the reranker that can be applied to new lists."""
    ingredients, folder = _ingredients(experiment, link), experiment.result("reranker")
    requests = ingredients.requests
    parts = [part for request in requests if not request.row.one_list for part in request.files]
    texts = [path for _, path in ingredients.reports] + ([ingredients.ablation] if ingredients.ablation else [])
    train, counted = experiment.train, (experiment.train.source, experiment.dev.source)
    inputs = (
        ingredients.weights, ingredients.confidence, *texts, *parts, *counted,
        *(folder for each in ingredients.candidates for folder in each.folders),
    )  # fmt: skip
    names = [name for name, _ in ingredients.reports]
    settings = [
        [request.identity for request in requests],
        names,
        link,
        [os.path.basename(path) for path in (train.target, *counted)],
    ]
    if folders := [request.folder for request in requests if runs_code(request.text)]:
        settings.append(folders)
    if ingredients.candidates:
        settings.append([each.identity for each in ingredients.candidates])
    action = partial(make_or_go_on, folder, inputs, settings, partial(_make_anew, ingredients))
    return Stage("keep the reranker", inputs, settings, (folder,), action)


def _make_anew(ingredients: Ingredients, folder: str) -> None:
    """Make a reranker where a killed run may have left a part of one."""
    shutil.rmtree(folder, ignore_errors=True)
    make_reranker(ingredients, folder)
