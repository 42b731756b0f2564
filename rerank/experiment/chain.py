"""The whole chain of an experiment: train, score, tune, rerank, evaluate."""

import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from features.feature import Resources
from features.kinds.language_model import require_kenlm
from features.models.training.request import ParallelFiles, TrainingFiles, train_model
from features.request import FeatureRequest, together
from moses_io.errors import InputError
from moses_io.locks import locked
from moses_io.nbest import read_nbest
from moses_io.streams import check_plain
from moses_io.text import read_lines, read_references
from moses_io.weights import read_weights, weight_files
from rerank.append import join_features, write_features
from rerank.experiment.file import Experiment, ModelEntry, NbestFiles
from rerank.experiment.stages import Stage, make_or_go_on, run_stages
from rerank.report.reranking import RerankingFiles, write_report
from rerank.reranker.make import Ingredients, make_reranker
from rerank.scoring import check_labels
from rerank.selection import Outputs, choose_by_total, read_holes, rerank
from rerank.tuning.ablation import Ablation, write_ablation
from rerank.tuning.tune import tune
from rerank.tuning.tuning_set import Lists


def run_experiment(experiment: Experiment, resources: Resources, jobs: int = 1, link: bool = False) -> list[str]:
    """Do what is not done yet, `jobs` models and features at a time, and return the lines of the report.

    The folder of results holds the models, the scored lists, `weights.ini`, `test.moses`, `test.reranked`,
    `report.txt`, `report.html` (every changed sentence and why) and `report.json`; and `reranker`, the folder that
    is applied to new lists, with models and tables copied into it, or linked to.
    """
    _check(experiment)
    stages = [*_stages(experiment, resources), _keep(experiment, link)]
    _make_folder(experiment, stages)
    with locked(experiment.output):
        run_stages(stages, experiment.output / "stages.json", jobs)
    return read_lines(experiment.result("report.txt"))


def _check(experiment: Experiment) -> None:
    """Refuse, before the hours of training, what can be seen at once; files are read more than once."""
    for path in experiment.files:
        check_plain(path)
    read_weights(experiment.start)
    for files in (experiment.dev, experiment.test):
        read_references([files.source, *files.reference])
        check_labels(next(read_nbest(files.nbest)), list(experiment.features))
    if any(request.kind.startswith("kenlm") for request in experiment.features.values()):
        require_kenlm()


def _make_folder(experiment: Experiment, stages: list[Stage]) -> None:
    """Make the folder of results, unless something in it that the experiment reads would be lost."""
    inputs = {Path(path).resolve() for path in experiment.files}
    for path in (path for stage in stages for path in stage.outputs):
        if Path(path).resolve() in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it; name another output")
    models = experiment.output / "models"
    if models.is_symlink():
        raise InputError(f"{models}: a symbolic link, expected a folder; remove it")
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{experiment.output}: {error.strerror}") from None


def _stages(experiment: Experiment, resources: Resources) -> list[Stage]:
    models = [_train(experiment, name, entry, resources.device) for name, entry in experiment.models.items()]
    dev = _score(experiment, "dev", experiment.dev, resources)
    test = _score(experiment, "test", experiment.test, resources)
    scored_dev = dev[-1].outputs[0] if dev else experiment.dev.nbest
    scored_test = test[-1].outputs[0] if test else experiment.test.nbest
    chosen = [_tune(experiment, scored_dev), *_choose(experiment, scored_test)]
    worth = [_ablate(experiment, scored_dev, scored_test)] if experiment.features else []
    return [*models, *dev, *test, *chosen, *worth, _evaluate(experiment, scored_test)]


def _train(experiment: Experiment, name: str, entry: ModelEntry, device: str) -> Stage:
    dev = ParallelFiles(source=experiment.dev.source, target=experiment.dev.reference[0])
    files = TrainingFiles(corpus=experiment.train, dev=dev)
    folder, start = experiment.result(f"models/{name}"), _model_path(experiment, entry.start) if entry.start else ""
    settings = {
        "preset": entry.request.preset,
        "backward": entry.request.backward,
        "right-to-left": entry.request.right_to_left,
        "settings": [asdict(part) for part in entry.request.settle()],
    }
    inputs = (experiment.train.source, experiment.train.target, dev.source, dev.target, *([start] if start else []))
    train = partial(train_model, entry.request, files, device=device, start=start, resume=True)
    action = partial(make_or_go_on, folder, inputs, settings, train)
    return Stage(f"train {name}", inputs, settings, (folder,), action, apart=True)


def _model_path(experiment: Experiment, name: str) -> str:
    """Return the folder of a model of the experiment, or another one as it is."""
    return experiment.result(f"models/{name}") if name.partition("/")[0] in experiment.models else name


def _requests(experiment: Experiment, name: str = "{set}") -> list[FeatureRequest]:
    """Return the features with the folders of their models, and of scores the files of a set."""
    requests = []
    for each in experiment.features.values():
        request = replace(each, argument=each.argument.replace("{set}", name))
        requests.append(request.with_parts([_model_path(experiment, part) for part in request.parts]))
    return requests


def _score(experiment: Experiment, name: str, files: NbestFiles, resources: Resources) -> list[Stage]:
    """Return a stage for each feature, or for those that read the same models, and one that joins them to the list."""
    if not experiment.features:
        return []
    stages = []
    for group in together(_requests(experiment, name)):
        output = experiment.result(f"{name}.{group[0].label}.features.gz")
        parts = [part for request in group for part in (*request.parts, *request.code)]
        settings = [
            [[request.label, request.kind, request.values] for request in group],
            resources.precision if group[0].readers else "",
        ]
        action = partial(write_features, files.nbest, files.source, group, output, resources)
        inputs = (files.nbest, files.source, *parts)
        stages.append(Stage(f"score {name} {group[0].label}", inputs, settings, (output,), action, apart=True))
    columns, output = [stage.outputs[0] for stage in stages], experiment.result(f"{name}.nbest.gz")
    action = partial(join_features, files.nbest, columns, output)
    return [*stages, Stage(f"join {name}", (files.nbest, *columns), None, (output,), action, apart=True)]


def _tune(experiment: Experiment, nbest: str) -> Stage:
    start, entry, weights = experiment.start, experiment.tuning, experiment.result("weights.ini")
    lists = _lists(experiment, experiment.dev, nbest)
    settings = [entry.tuning.signature, entry.tuning.metric, lists.signature, asdict(entry.caution)]
    action = partial(tune, lists, start, entry.tuning, weights, entry.caution)
    return Stage("tune", (nbest, *lists.references, *weight_files(start)), settings, (weights,), action)


def _lists(experiment: Experiment, files: NbestFiles, scored: str) -> Lists:
    return Lists(nbest=[scored], references=files.reference, filters=experiment.tuning.filters)


def _ablate(experiment: Experiment, dev: str, test: str) -> Stage:
    """Tell what each feature of the experiment is worth."""
    entry, outputs = experiment.tuning, (experiment.result("ablation.txt"), experiment.result("ablation.json"))
    ablation = Ablation(
        dev=_lists(experiment, experiment.dev, dev),
        test=_lists(experiment, experiment.test, test),
        start=experiment.start,
        features=tuple(experiment.features),
        folds=entry.caution.folds,
    )
    settings = [entry.tuning.signature, entry.tuning.metric, entry.filters.text, ablation.folds]
    references = (*experiment.dev.reference, *experiment.test.reference)
    inputs = (dev, test, *references, *weight_files(experiment.start))
    return Stage("ablate", inputs, settings, outputs, partial(write_ablation, ablation, entry.tuning, outputs))


def _choose(experiment: Experiment, scored: str) -> list[Stage]:
    """Moses' own choice and ours; a sentence without candidates gets an empty line in both."""
    nbest, source = experiment.test.nbest, experiment.test.source
    weights, moses, ours = (experiment.result(name) for name in ("weights.ini", "test.moses", "test.reranked"))
    holes = read_holes(source, None, "blank")
    decode, choose = (
        partial(choose_by_total, nbest, holes, moses),
        partial(rerank, scored, weights, holes, Outputs(ours)),
    )
    return [
        Stage("choose as Moses did", (nbest, source), None, (moses,), decode),
        Stage("rerank test", (scored, source, weights), None, (ours,), choose),
    ]


def _evaluate(experiment: Experiment, scored: str) -> Stage:
    test, filters = experiment.test, experiment.tuning.filters
    files = RerankingFiles(
        before=experiment.result("test.moses"),
        after=experiment.result("test.reranked"),
        source=test.source,
        references=test.reference,
        nbest=test.nbest,
        scored=scored,
        weights=experiment.result("weights.ini"),
        ablation=experiment.result("ablation.txt") if experiment.features else "",
    )
    inputs = (files.before, files.after, files.source, *files.references, files.nbest, files.scored, files.weights)
    inputs += (files.ablation,) if files.ablation else ()
    reports = tuple(experiment.result(f"report.{suffix}") for suffix in ("txt", "html", "json"))
    return Stage("evaluate", inputs, filters.text, reports, partial(write_report, files, filters, reports))


def _keep(experiment: Experiment, link: bool) -> Stage:
    """Make the reranker that can be applied to new lists."""
    requests, folder = _requests(experiment), experiment.result("reranker")
    ingredients = Ingredients(
        requests=tuple(requests),
        weights=experiment.result("weights.ini"),
        corpus=experiment.train,
        dev=experiment.dev.source,
        reports=(("test", experiment.result("report.txt")),),
        ablation=experiment.result("ablation.txt") if requests else "",
        link=link,
    )
    parts = [part for request in requests if request.kind != "scores" for part in request.parts]
    inputs = (ingredients.weights, *(path for _, path in ingredients.reports), *parts)
    settings = [[[request.label, request.kind, request.values] for request in requests], link]
    action = partial(make_or_go_on, folder, inputs, settings, partial(_make_anew, ingredients))
    return Stage("keep the reranker", inputs, settings, (folder,), action)


def _make_anew(ingredients: Ingredients, folder: str) -> None:
    """Make a reranker where a killed run may have left a part of one."""
    shutil.rmtree(folder, ignore_errors=True)
    make_reranker(ingredients, folder)
