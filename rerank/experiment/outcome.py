"""Stages that follow the tuning: choices on test sets, what features are worth, and the reports."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from features.models.config import read_config
from features.request import FeatureRequest
from moses_io.nbest import read_moses_output
from moses_io.text import write_text
from moses_io.weights import weight_files
from rerank.confidence.file import CONFIDENCE, FORMAT
from rerank.confidence.fitting import DevFiles, fit_confidence
from rerank.experiment.file import Experiment
from rerank.experiment.sets import SET, UNNAMED, NbestFiles
from rerank.experiment.stages import Stage
from rerank.linear.selection import Holes, Outputs, choose_by_total, read_holes, rerank
from rerank.metrics.metric import Metric
from rerank.report.changes import MOSES, RERANKED
from rerank.report.reranking import RerankingFiles, write_report
from rerank.report.worth import write_table
from rerank.systems.attention import attend as read_choices
from rerank.tuning.ablation import Ablation, write_ablation, write_column
from rerank.tuning.gain import GAIN
from rerank.tuning.tuning_set import Lists


def scored_lists(experiment: Experiment, name: str) -> Lists:
    """Return the list of a set with all features, and its references."""
    references = experiment.sets[name].reference
    return Lists(nbest=[experiment.scored(name)], references=references, filters=experiment.tuning.filters)


def requests_of(experiment: Experiment, name: str = SET) -> list[FeatureRequest]:
    """Return the features with the folders of their models, and of scores the files of a set."""
    requests = []
    for each in experiment.features.values():
        request = replace(each, argument=each.argument.replace(SET, name))
        requests.append(request.with_parts([experiment.model(part) for part in request.parts]))
    return requests


def confide(experiment: Experiment) -> Stage:
    """Fit, on folds of dev, how good choices are and how likely a change helps."""
    entry = experiment.tuning
    files = DevFiles(
        lists=scored_lists(experiment, "dev"),
        start=experiment.start,
        weights=experiment.result("weights.ini"),
        moses_output=experiment.dev.moses_output,
    )
    folds, output = entry.caution.folds, experiment.result(CONFIDENCE)
    settings = [entry.tuning.signature, entry.tuning.metric, entry.confidence, entry.filters.text, folds, FORMAT]
    inputs = (*files.lists.nbest, *files.lists.references, *weight_files(files.start), files.weights)
    inputs += (files.moses_output,) if files.moses_output else ()
    action = partial(fit_confidence, files, entry.tuning, entry.confidence, folds, output)
    return Stage("estimate confidence", inputs, settings, (output,), action)


def choose(experiment: Experiment, name: str, files: NbestFiles) -> list[Stage]:
    """Return the stages of Moses' own choice and of ours.

    Moses' choice is its output if the experiment names that, else the candidates with the highest totals. For a
    sentence without candidates both have the line of the output, or an empty line.
    """
    nbest, source, scored = files.nbest, files.source, experiment.scored(name)
    moses, ours = (experiment.result(f"{name}.{system}") for system in (MOSES, RERANKED))
    weights, output = experiment.result("weights.ini"), files.moses_output
    holes = read_holes(source, None, "blank")
    decode, read = partial(choose_by_total, nbest, holes, moses), (nbest, source)
    if output:
        lines = read_moses_output(output, source, experiment.tuning.filters.marks).lines
        holes = Holes(len(lines), lines=lines)
        decode, read = partial(write_text, moses, "".join(f"{line}\n" for line in lines)), (output, source)
    choice = partial(rerank, scored, weights, holes, Outputs(ours))
    inputs = (scored, source, weights, *([output] if output else []))
    return [
        Stage(_of("choose as Moses did", name), read, None, (moses,), decode),
        Stage(f"rerank {name}", inputs, None, (ours,), choice),
    ]


def ablate(experiment: Experiment) -> list[Stage]:
    """Tell what each feature of the experiment is worth: on dev, where weights are tuned, then on test sets."""
    columns = _columns(experiment, experiment.sets)
    if not columns:
        return []
    outputs = (experiment.result("ablation.txt"), experiment.result("ablation.json"))
    table = Stage("ablate", tuple(columns.values()), list(columns), outputs, partial(write_table, columns, outputs))
    dev, *tests = columns
    return [_ablate_dev(experiment, columns[dev]), *(_ablate_test(experiment, name, columns) for name in tests), table]


def _ablate_dev(experiment: Experiment, output: str) -> Stage:
    entry = experiment.tuning
    ablation = Ablation(
        dev=scored_lists(experiment, "dev"),
        start=experiment.start,
        features=tuple(experiment.features),
        folds=entry.caution.folds,
    )
    settings = [entry.tuning.signature, entry.tuning.metric, entry.filters.text, ablation.folds, *ablation.features]
    inputs = (*ablation.dev.nbest, *ablation.dev.references, *weight_files(experiment.start))
    return Stage("ablate dev", inputs, settings, (output,), partial(write_ablation, ablation, entry.tuning, output))


def _ablate_test(experiment: Experiment, name: str, columns: Mapping[str, str]) -> Stage:
    lists, metric = scored_lists(experiment, name), experiment.tuning.tuning.metric
    action = partial(write_column, lists, Metric(metric), columns["dev"], columns[name])
    inputs = (*lists.nbest, *lists.references, columns["dev"])
    return Stage(f"ablate {name}", inputs, [metric, lists.filters.text], (columns[name],), action)


def attend(experiment: Experiment, name: str, files: NbestFiles, device: str) -> list[Stage]:
    """Keep what models attended to while they read Moses' choices and ours, for the report."""
    models, output = attentive(experiment), _attention(experiment, name)
    if not models:
        return []
    systems = {system: experiment.result(f"{name}.{system}") for system in (MOSES, RERANKED)}
    action = partial(read_choices, models, files.source, systems, device, output)
    inputs = (files.source, *systems.values(), *models.values())
    return [Stage(f"attend {name}", inputs, list(models), (output,), action, apart=True)]


def attentive(experiment: Experiment) -> dict[str, str]:
    """Return the folders of the models that features read and that have attention, by their names in the experiment.

    Raises:
        InputError: a folder that is no model.
    """
    requests = [request for request in experiment.features.values() if request.row.takes == "models"]
    names = dict.fromkeys(part for request in requests for part in request.parts)
    return {name: experiment.model(name) for name in names if _wiring(experiment, name) != "none"}


def _wiring(experiment: Experiment, name: str) -> str:
    entry = experiment.models.get(name.partition("/")[0])
    return (entry.request.settle()[0] if entry else read_config(Path(name)).architecture).wiring


def _attention(experiment: Experiment, name: str) -> str:
    """Return the path of what models attended to, empty where none has attention."""
    return experiment.result(f"{name}.attention.npz") if attentive(experiment) else ""


def evaluate(experiment: Experiment, name: str, files: NbestFiles) -> Stage:
    """Tell what reranking changed and, where there are references, what it gained."""
    reranking = RerankingFiles(
        before=experiment.result(f"{name}.{MOSES}"),
        after=experiment.result(f"{name}.{RERANKED}"),
        source=files.source,
        references=files.reference,
        scored=experiment.scored(name),
        weights=experiment.result("weights.ini"),
        ablation=_columns(experiment, ("dev", name)),
        confidence=experiment.result(CONFIDENCE),
        gain=experiment.result(GAIN),
        attention=_attention(experiment, name),
        name=name,
        train_target=experiment.train.target,
    )
    beside = (*reranking.ablation.values(), reranking.confidence, reranking.gain)
    beside += (reranking.attention,) if reranking.attention else ()
    filters = experiment.tuning.filters
    made = (reranking.before, reranking.after, reranking.scored, reranking.weights)
    counted = [reranking.train_target] if files.reference else []
    inputs = (files.source, *files.reference, *made, *beside, *counted)
    reports = tuple(experiment.report(name, suffix) for suffix in ("txt", "html", "json"))
    action = partial(write_report, reranking, filters, reports)
    return Stage(_of("evaluate", name), inputs, filters.text, reports, action)


def _columns(experiment: Experiment, names: Iterable[str]) -> dict[str, str]:
    """Return where it is said what features are worth on those of the sets that have references; dev always has."""
    judged = [name for name in names if experiment.features and experiment.sets[name].reference]
    return {name: experiment.result(f"{name}.ablation.json") for name in judged}


def _of(stage: str, test: str) -> str:
    """Return the name of a stage of a test set, without that of the set which has none."""
    return stage if test == UNNAMED else f"{stage}, {test}"
