"""The whole chain of an experiment: train, score, tune, rerank, evaluate."""

import itertools
import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from features.feature import Resources
from features.kinds.language_model import require_kenlm
from features.models.training.request import TrainingFiles, train_model
from features.progress import warn
from features.request import FeatureRequest, together
from moses_io.errors import InputError, shown
from moses_io.folders import locked, make_folder
from moses_io.nbest import check_id, read_nbest
from moses_io.streams import check_plain
from moses_io.text import read_lines, read_references, write_text
from moses_io.weights import read_weights, weight_files
from rerank.append import join_features, write_features
from rerank.confidence.file import CONFIDENCE
from rerank.experiment.file import Experiment, TuningEntry
from rerank.experiment.models import ModelEntry
from rerank.experiment.outcome import ablate, attend, choose, confide, evaluate, scored_lists
from rerank.experiment.sets import CHOOSE, NbestFiles
from rerank.experiment.stages import Stage, make_or_go_on, run_stages
from rerank.reranker.make import Ingredients, gains, make_reranker
from rerank.scoring import check_joined, check_labels, check_total
from rerank.systems.request import indicators
from rerank.systems.widening import widen_list
from rerank.tuning.gain import FORMAT, GAIN, write_gain
from rerank.tuning.tune import tune
from rerank.tuning.tuning_set import Lists

RECORD = "stages.json"
"""What was made, in the folder of results."""


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
    stages = [*_stages(experiment, resources), _keep(experiment, link)]
    _make_folder(experiment, stages)
    with locked(experiment.output):
        run_stages(stages, experiment.output / RECORD, jobs, address)
    reports = {name: read_lines(experiment.report(name, "txt")) for name in experiment.tests}
    if len(reports) > 1:
        return [line for name, report in reports.items() for line in ("", f"{name}:", *report)][1:]
    return next(iter(reports.values())) if reports else gains(_ingredients(experiment, link))


def check_inputs(experiment: Experiment) -> None:
    """Refuse, before the hours of training, what can be seen at once; lists are read to their end the first time.

    Raises:
        InputError: a file is missing, or no plain one; weights or a line of a list cannot be read, a source and its
            references differ in length, a list has an id beyond them or a feature of the experiment already, or lacks
            a total that one needs or what says who has a candidate, or kenlm is missing.
    """
    for path in experiment.files:
        check_plain(path)
    for name in experiment.models if experiment.trained else ():
        if not Path(experiment.model(name)).is_dir():
            raise InputError(f"{experiment.model(name)}: no such folder, expected the trained model {name!r}")
    read_weights(experiment.start)
    for files in experiment.sets.values():
        source, *_ = read_references([files.source, *files.reference])
        labels = [*experiment.features, *indicators([each.name for each in experiment.candidates])]
        lists = read_nbest(files.nbest)
        first = next(lists)
        check_labels(first, labels)
        if not experiment.candidates:
            check_joined(first, experiment.features)
        for sentence_list in itertools.chain([first], () if (experiment.output / RECORD).exists() else lists):
            check_id(sentence_list, len(source), "source")
            check_total(sentence_list, experiment.features)
    if any(request.kind.startswith("kenlm") for request in experiment.features.values()):
        require_kenlm()
    parts = [part for request in experiment.features.values() for part in request.parts]
    used = {part.partition("/")[0] for part in (*parts, *(entry.start for entry in experiment.models.values()))}
    for name, entry in experiment.models.items():
        if name not in used and not entry.candidates:
            warn(f"no feature uses the model {shown(name)}")


def _make_folder(experiment: Experiment, stages: list[Stage]) -> None:
    """Make the folder of results, unless something in it that the experiment reads would be lost."""
    inputs = {Path(path).resolve() for path in experiment.files}
    for path in (path for stage in stages for path in stage.outputs):
        if Path(path).resolve() in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it; name another output")
    models = experiment.output / "models"
    if models.is_symlink():
        raise InputError(f"{models}: a symbolic link, expected a folder; remove it")
    make_folder(experiment.output if experiment.trained else models)


def _stages(experiment: Experiment, resources: Resources) -> list[Stage]:
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
    return [*spelled, *models, *widened, *scores, *tuned, *choices, *ablate(experiment), *read, *reports]


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


def _requests(experiment: Experiment, name: str = "{set}") -> list[FeatureRequest]:
    """Return the features with the folders of their models, and of scores the files of a set."""
    requests = []
    for each in experiment.features.values():
        request = replace(each, argument=each.argument.replace("{set}", name))
        requests.append(request.with_parts([experiment.model(part) for part in request.parts]))
    return requests


def _widen(experiment: Experiment, name: str, files: NbestFiles, resources: Resources) -> Stage:
    """Return the stage that adds candidates of models to a list."""
    requests, output = experiment.candidates, experiment.nbest(name)
    settings = [[each.identity for each in requests], resources.precision]
    inputs = (files.nbest, files.source, *(folder for each in requests for folder in each.folders))
    action = partial(widen_list, files.nbest, files.source, requests, output, resources)
    return Stage(f"translate {name}", inputs, settings, (output,), action, apart=True)


def _score(experiment: Experiment, name: str, files: NbestFiles, resources: Resources) -> list[Stage]:
    """Return a stage for each feature, or for those that read the same models, and one that joins them to the list."""
    if not experiment.features:
        return []
    stages, nbest = [], experiment.nbest(name)
    for group in together(_requests(experiment, name)):
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
    requests = _requests(experiment)
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
    parts = [part for request in requests if request.kind != "scores" for part in request.files]
    texts = [path for _, path in ingredients.reports] + ([ingredients.ablation] if ingredients.ablation else [])
    inputs = (
        ingredients.weights, ingredients.confidence, *texts, *parts,
        *(folder for each in ingredients.candidates for folder in each.folders),
    )  # fmt: skip
    names = [name for name, _ in ingredients.reports]
    settings = [[request.identity for request in requests], names, link]
    if ingredients.candidates:
        settings.append([each.identity for each in ingredients.candidates])
    action = partial(make_or_go_on, folder, inputs, settings, partial(_make_anew, ingredients))
    return Stage("keep the reranker", inputs, settings, (folder,), action)


def _make_anew(ingredients: Ingredients, folder: str) -> None:
    """Make a reranker where a killed run may have left a part of one."""
    shutil.rmtree(folder, ignore_errors=True)
    make_reranker(ingredients, folder)
