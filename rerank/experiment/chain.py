"""The whole chain of an experiment: train, score, tune, rerank, evaluate."""

import hashlib
import json
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from features.feature import Resources
from features.kinds.language_model import require_kenlm
from features.models.training.request import Texts, TrainingRequest, train_model
from features.progress import note
from features.request import parse_requests, together
from moses_io.errors import InputError
from moses_io.nbest import read_nbest
from moses_io.streams import open_output
from moses_io.text import encode, read_lines, read_references
from moses_io.weights import read_weights
from rerank.append import check_labels, join_features, write_features
from rerank.experiment.file import Experiment, ModelEntry, NbestSet
from rerank.experiment.stages import Stage, locked, run_stages, wanted
from rerank.report.changes import find_changes
from rerank.report.evaluation import evaluate, look_up
from rerank.report.page import page
from rerank.report.terminal import side_by_side, summary, table
from rerank.selection import choose_by_total, read_holes, rerank
from rerank.tuning.ablation import ablate, as_json, lines
from rerank.tuning.tune import FOLDS, groups, read_problem, tune
from rerank.tuning.tuning_set import Lists


def run_experiment(experiment: Experiment, resources: Resources, jobs: int = 1) -> list[str]:
    """Do what is not done yet, `jobs` models and features at a time, and return the lines of the report.

    The folder of results holds the models, the scored lists, `weights.ini`, `test.moses`, `test.reranked`,
    `report.txt`, `report.html` (every changed sentence and why) and `report.json`.
    """
    check_experiment(experiment)
    stages = _stages(experiment, resources)
    _make_folder(experiment, stages)
    with locked(experiment.output):
        run_stages(stages, experiment.output / "stages.json", jobs)
    return read_lines(str(experiment.output / "report.txt"))


def _stages(experiment: Experiment, resources: Resources) -> list[Stage]:
    stages = [_train(experiment, name, entry, resources.device) for name, entry in experiment.models.items()]
    dev = _score(experiment, "dev", experiment.dev, resources)
    test = _score(experiment, "test", experiment.test, resources)
    scored_dev = dev[-1].outputs[0] if dev else experiment.dev.nbest
    scored_test = test[-1].outputs[0] if test else experiment.test.nbest
    stages += [*dev, *test, _tune(experiment, scored_dev), *_choose(experiment, scored_test)]
    worth = [_ablate(experiment, scored_dev, scored_test)] if experiment.features else []
    return [*stages, *worth, _evaluate(experiment, scored_test)]


def _make_folder(experiment: Experiment, stages: list[Stage]) -> None:
    """Make the folder of results, unless something in it that the experiment reads would be lost."""
    inputs = {path.resolve() for path in experiment.files}
    for path in (path for stage in stages for path in stage.outputs):
        if path.resolve() in inputs:
            raise InputError(f"{path}: the experiment reads this file and would write over it; name another output")
    try:
        (experiment.output / "models").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{experiment.output}: {error.strerror}") from None


def check_experiment(experiment: Experiment) -> None:
    """Refuse, before the hours of training, what can be seen at once.

    Raises:
        InputError: a file is missing, a source and its reference differ in length, the start weights cannot be read,
            a list has a feature of that label already, or kenlm is not installed.
    """
    read_weights(str(experiment.start))
    for part in (experiment.dev, experiment.test):
        read_references([str(part.source), *(str(path) for path in part.reference)])
        first = next(read_nbest(str(part.nbest)))
        check_labels(first, list(experiment.features))
    if any(text.startswith("kenlm") for text in experiment.features.values()):
        require_kenlm()


def _train(experiment: Experiment, name: str, entry: ModelEntry, device: str) -> Stage:
    corpus, dev = experiment.train, experiment.dev
    target = dev.reference[0]
    texts = Texts((str(corpus.source), str(corpus.target)), (str(dev.source), str(target)))
    folder, start = experiment.output / "models" / name, _model_path(experiment, entry.start) if entry.start else ""
    told = {
        "preset": entry.request.preset,
        "backward": entry.request.backward,
        "right-to-left": entry.request.right_to_left,
        "settings": [asdict(part) for part in entry.request.settle()],
    }
    inputs = (corpus.source, corpus.target, dev.source, target, *([Path(start)] if start else []))
    action = partial(_train_or_go_on, folder, inputs, told, entry.request, texts, device, start)
    return Stage(f"train {name}", inputs, told, (folder,), action, apart=True)


def _train_or_go_on(
    folder: Path,
    inputs: tuple[Path, ...],
    told: dict[str, Any],
    request: TrainingRequest,
    texts: Texts,
    device: str,
    start: str,
) -> None:
    """Train beside the folder and move the result there; what a killed run left of the same training goes on."""
    key = hashlib.sha256(json.dumps(wanted(inputs, told)).encode()).hexdigest()[:12]
    place = folder.with_name(f".{folder.name}.training-{key}")
    for other in folder.parent.glob(f".{folder.name}.training-*"):
        if other != place:
            shutil.rmtree(other)
    train_model(request, texts, str(place / folder.name), device, start, resume=True)
    (place / folder.name).rename(folder)
    place.rmdir()


def _model_path(experiment: Experiment, name: str) -> str:
    """Return the folder of a model of the experiment, or another one as it is."""
    known = name.partition("/")[0] in experiment.models
    return str(experiment.output / "models" / name) if known else name


def _score(experiment: Experiment, name: str, test_set: NbestSet, resources: Resources) -> list[Stage]:
    """Return a stage for each feature, or for those that read the same models, and one that joins them to the list."""
    if not experiment.features:
        return []
    asked = parse_requests([f"{label}={text.replace('{set}', name)}" for label, text in experiment.features.items()])
    requests = [request.with_parts([_model_path(experiment, part) for part in request.parts]) for request in asked]
    stages = []
    for group in together(requests):
        output = experiment.output / f"{name}.{group[0].label}.features.gz"
        action = partial(write_features, str(test_set.nbest), str(test_set.source), group, str(output), resources)
        parts = [Path(part) for request in group for part in (*request.parts, *request.code)]
        told = [[request.label, request.kind, request.values] for request in group]
        settings = [told, resources.precision if group[0].readers else ""]
        stage = Stage(
            f"score {name} {group[0].label}",
            (test_set.nbest, test_set.source, *parts),
            settings,
            (output,),
            action,
            apart=True,
        )
        stages.append(stage)
    columns, output = [stage.outputs[0] for stage in stages], experiment.output / f"{name}.nbest.gz"
    action = partial(join_features, str(test_set.nbest), [str(path) for path in columns], str(output))
    return [*stages, Stage(f"join {name}", (test_set.nbest, *columns), None, (output,), action, apart=True)]


def _tune(experiment: Experiment, nbest: Path) -> Stage:
    references, settings = experiment.dev.reference, experiment.tuning
    weights = experiment.output / "weights.ini"
    lists = Lists([str(nbest)], [str(path) for path in references], settings.filters)
    action = partial(tune, lists, str(experiment.start), settings.tuning, str(weights), settings.caution)
    told = [settings.tuning.signature, settings.tuning.metric, lists.signature, asdict(settings.caution)]
    return Stage("tune", (nbest, *references, experiment.start), told, (weights,), action)


def _ablate(experiment: Experiment, dev: Path, test: Path) -> Stage:
    """Tell what each feature of the experiment is worth."""
    settings, outputs = experiment.tuning, tuple(experiment.output / f"ablation.{suffix}" for suffix in ("txt", "json"))

    def lists(nbest: Path, references: tuple[Path, ...]) -> Lists:
        return Lists([str(nbest)], [str(path) for path in references], settings.filters)

    def action() -> None:
        given = [lists(dev, experiment.dev.reference), lists(test, experiment.test.reference)]
        on_dev, on_test = (read_problem(each, str(experiment.start), settings.tuning)[0] for each in given)
        columns = groups(on_dev.candidates.space)
        folds = min(settings.caution.folds or FOLDS, len(on_dev.candidates.sentences))
        rows = ablate(on_dev, on_test, settings.tuning, {label: columns[label] for label in experiment.features}, folds)
        told = ["\n".join(lines(rows, on_dev.formula.name, folds)), json.dumps(as_json(rows), indent=2)]
        for path, content in zip(outputs, told, strict=True):
            with open_output(str(path)) as stream:
                stream.write(encode(content + "\n"))

    told = [settings.tuning.signature, settings.tuning.metric, settings.filters.text, settings.caution.folds]
    inputs = (dev, test, *experiment.dev.reference, *experiment.test.reference, experiment.start)
    return Stage("ablate", inputs, told, outputs, action)


def _choose(experiment: Experiment, nbest: Path) -> list[Stage]:
    """Moses' own choice and ours; a sentence without candidates gets an empty line in both."""
    test, output = experiment.test, experiment.output
    weights, moses, reranked = output / "weights.ini", output / "test.moses", output / "test.reranked"

    def decode() -> None:
        choose_by_total(str(test.nbest), read_holes(str(test.source), None, "blank"), str(moses))

    def choose() -> None:
        rerank(str(nbest), str(weights), read_holes(str(test.source), None, "blank"), str(reranked))

    return [
        Stage("choose as Moses did", (test.nbest, test.source), None, (moses,), decode),
        Stage("rerank test", (nbest, test.source, weights), None, (reranked,), choose),
    ]


def _evaluate(experiment: Experiment, scored: Path) -> Stage:
    test, output = experiment.test, experiment.output
    names, weights = ("test.moses", "test.reranked"), output / "weights.ini"
    ablation = output / "ablation.txt"
    reports = tuple(output / f"report.{suffix}" for suffix in ("txt", "html", "json"))

    def action() -> None:
        filters = experiment.tuning.filters
        references = [
            [filters(line) for line in lines] for lines in read_references([str(path) for path in test.reference])
        ]
        before, after = (read_lines(str(output / name)) for name in names)
        systems = [
            (name, [filters(line) for line in lines]) for name, lines in (("moses", before), ("reranked", after))
        ]
        facts = look_up(str(test.nbest), references, systems, filters)
        evaluation = evaluate(systems, references, facts=facts, filtered=filters.signature)
        source = read_lines(str(test.source))
        changes = find_changes(str(scored), read_weights(str(weights)), source, references, before, after, filters)
        worth = read_lines(str(ablation)) if experiment.features else []
        text = [*table(evaluation), "", *worth, "", summary(changes, len(source)), *side_by_side(changes)]
        contents = (
            "\n".join(text),
            page(evaluation, changes, len(source), worth),
            json.dumps(evaluation.as_json(), indent=2),
        )
        for path, content in zip(reports, contents, strict=True):
            with open_output(str(path)) as stream:
                stream.write(encode(content + "\n"))
        note(f"every changed sentence, and why: {output / 'report.html'}")

    inputs = (*(output / name for name in names), test.source, *test.reference, test.nbest, scored, weights)
    inputs += (ablation,) if experiment.features else ()
    return Stage("evaluate", inputs, experiment.tuning.filters.text, reports, action)
