"""All stages of an experiment: train, translate, score, tune, rerank, ablate, report, and make the reranker."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from features.feature import Resources
from features.models.config import read_config
from features.models.cost import CorpusSize, TimeFactors
from features.models.training.request import TrainingFiles, train_model
from features.monolingual import MAX_SENTENCE_LENGTH, Selection
from features.request import runs_code
from moses_io.files.text import write_text
from moses_io.nbest import read_moses_output
from moses_io.weights import weight_files
from rerank.confidence.confidence import CONFIDENCE
from rerank.confidence.confidence import FORMAT as CONFIDENCE_FORMAT
from rerank.confidence.fitting import fit_confidence
from rerank.experiment.costs import SHORT_WORK, Costs
from rerank.experiment.entries import SELECTION, UNNAMED, NbestFiles
from rerank.experiment.experiment import Experiment
from rerank.experiment.scoring import scoring_stages
from rerank.experiment.stages import Stage, folder_stage
from rerank.linear.missing import Replacements, read_replacements
from rerank.linear.selection import Outputs, choose_by_total, choose_by_weights
from rerank.linear.weights import load_weight_file
from rerank.metrics.metric import Metric
from rerank.report.changes import MOSES, RERANKED
from rerank.report.reranking import RerankingFiles, write_report
from rerank.reranker.make import Ingredients, make_reranker
from rerank.systems.attention import attend as write_attention
from rerank.systems.comparison import COMPARISON, MIN_RATIO, SENTENCES, compare_translations
from rerank.systems.translations import CandidateRequest
from rerank.tuning.ablation import write_ablation, write_column, write_table
from rerank.tuning.gain import FORMAT as GAIN_FORMAT
from rerank.tuning.gain import GAIN, write_gain
from rerank.tuning.shortlist import CHOICE
from rerank.tuning.tune import tune


def stages_of(
    experiment: Experiment,
    resources: Resources,
    link: bool = False,
    corpus: CorpusSize | None = None,
    factors: TimeFactors | None = None,
    compared: tuple[CandidateRequest, ...] = (),
) -> list[Stage]:
    """Return all stages in order.

    Args:
        experiment: the experiment.
        resources: device, precision and cache of features.
        link: whether the reranker links to its models and tables instead of copying them.
        corpus: sizes of the corpus. If None, they are counted.
        factors: time factors of the machine, if they were measured.
        compared: models whose translations are compared with those of Moses before the lists are scored.
    """
    tests, costs = experiment.tests.items(), Costs(experiment, resources.device, corpus, factors)
    stages = [_write_experiment_file(experiment)] if experiment.text else []
    if not experiment.trained_models:
        stages += trainings(experiment, resources, costs)
    rest = scoring_stages(experiment, resources, costs)
    rest += [_tune(experiment, costs), _fit_confidence(experiment, costs)]
    rest += [stage for name, files in tests for stage in _choose(experiment, name, files, costs)]
    rest += _ablate(experiment, costs)
    rest += [stage for name, files in tests for stage in attend(experiment, name, files, resources.device, costs)]
    rest += [*(evaluate(experiment, name, files, costs) for name, files in tests), _save_reranker(experiment, link)]
    if compared:
        stages.append(_compare(experiment, compared, resources, costs))
        rest = [replace(stage, after=stages[-1].outputs) for stage in rest]
    return stages + rest


def _write_experiment_file(experiment: Experiment) -> Stage:
    """Return the stage that writes an experiment file with the models and features that were chosen by default."""
    output = experiment.planned_file
    write = partial(write_text, output, experiment.text)
    return Stage("choose models and features", (), experiment.text, (output,), write, work=SHORT_WORK)


def trainings(experiment: Experiment, resources: Resources, costs: Costs) -> list[Stage]:
    """Return one stage per model. A pair of models that train together has one stage.

    If models also train on monolingual text, one stage selects its sentences. For forward models another stage
    translates them.
    """
    names = list(experiment.models)
    synthetic = {name: files for name in names if (files := experiment.synthetic(name))}
    translated = [name for name, files in synthetic.items() if files.source == experiment.back_translations]
    stages = [_select(experiment, costs)] if synthetic else []
    stages += [_train(experiment, name, resources.device, costs) for name in names if name not in translated]
    if experiment.translates_text:
        stages.append(_back_translate(experiment, resources, costs))
    return stages + [_train(experiment, name, resources.device, costs) for name in translated]


def _train(experiment: Experiment, name: str, device: str, costs: Costs) -> Stage:
    """Return the stage that trains a model or a pair of models."""
    entry = experiment.models[name]
    request, start = entry.request, experiment.model(entry.pretrained_model) if entry.pretrained_model else ""
    synthetic = experiment.synthetic(name)
    files = TrainingFiles(request.reads(experiment.train), dev=experiment.dev.texts, synthetic=synthetic)
    settings = {
        "preset": request.preset,
        "backward": request.backward,
        "right_to_left": request.right_to_left,
        "settings": [asdict(part) for part in request.resolve()],
    }
    inputs = (*files.corpus.files, *files.dev.files, start, *(synthetic.files if synthetic else ()))
    train = partial(train_model, request, files, device=device, start=start, resume=True)
    folder, work = experiment.model(name), costs.training(name)
    return folder_stage(f"train {name}", inputs, settings, folder, train, separate=True, work=work)


def _select(experiment: Experiment, costs: Costs) -> Stage:
    """Return the stage that selects sentences of the monolingual text."""
    selection = Selection(costs.max_monolingual, experiment.references, experiment.train.target)
    text, output = experiment.monolingual, experiment.selected
    action = partial(selection.write, text, output)
    inputs = (text, *selection.excluded, selection.domain)
    settings = [selection.max_sentences, MAX_SENTENCE_LENGTH]
    work = costs.selection()
    return Stage("select monolingual text", inputs, settings, (output,), action, separate=True, work=work)


def _back_translate(experiment: Experiment, resources: Resources, costs: Costs) -> Stage:
    """Return the stage that translates the selected sentences of the monolingual text."""
    model, text = experiment.model(experiment.back_translator), experiment.selected
    output = experiment.back_translations
    action = partial(_write_translations, model, text, output, resources)
    work = costs.back_translation()
    return Stage("back-translate", (model, text), resources.precision, (output,), action, separate=True, work=work)


def _write_translations(model: str, text: str, output: str, resources: Resources) -> None:
    from features.models.decoding.backtranslation import back_translate

    back_translate(model, text, output, resources)


def _compare(
    experiment: Experiment, requests: tuple[CandidateRequest, ...], resources: Resources, costs: Costs
) -> Stage:
    """Return the stage that compares translations of models with those of Moses, on dev."""
    dev = experiment.dev
    output = experiment.result(COMPARISON)
    filters = experiment.tuning.filters
    action = partial(
        compare_translations,
        dev.nbest,
        dev.source,
        dev.reference,
        dev.moses_output,
        requests,
        output,
        filters,
        resources,
    )
    settings = [[each.identity for each in requests], filters.text, resources.precision, SENTENCES, MIN_RATIO]
    inputs = (*dev.files, *(path for each in requests for path in each.paths))
    work = costs.comparison(requests, SENTENCES)
    return Stage("compare translations", inputs, settings, (output,), action, separate=True, work=work)


def _tune(experiment: Experiment, costs: Costs) -> Stage:
    """Return the stage that tunes the weights. Its outputs are the weights and the gain."""
    entry, start = experiment.tuning, experiment.initial_weights
    weights, gain = experiment.weights, experiment.result(GAIN)
    dev, other = experiment.lists("dev"), experiment.lists(SELECTION) if experiment.selection else None

    def action() -> None:
        write_gain(gain, tune(dev, start, entry.tuning, weights, entry.fold_settings, other))

    settings = [entry.tuning.signature, entry.tuning.metric, dev.signature, asdict(entry.fold_settings), GAIN_FORMAT]
    inputs = (*dev.files, *(other.files if other else ()), *weight_files(start))
    return Stage("tune", inputs, settings, (weights, gain), action, work=costs.tuning())


def _fit_confidence(experiment: Experiment, costs: Costs) -> Stage:
    """Return the stage that fits sentence-level confidence estimation, on folds of dev."""
    entry = experiment.tuning
    lists = experiment.lists("dev")
    output = experiment.result(CONFIDENCE)
    tuning = entry.tuning
    folds = entry.fold_settings.folds
    printed = experiment.dev.moses_output
    read = (lists, experiment.initial_weights, experiment.weights)
    action = partial(fit_confidence, *read, tuning, entry.confidence, folds, output, moses_output=printed)
    settings = [tuning.signature, tuning.metric, entry.confidence, entry.filters.text, folds, CONFIDENCE_FORMAT]
    inputs = (*lists.files, *weight_files(experiment.initial_weights), experiment.weights, printed)
    return Stage("estimate confidence", inputs, settings, (output,), action, work=costs.confidence())


def _choose(experiment: Experiment, name: str, files: NbestFiles, costs: Costs) -> list[Stage]:
    """Return the stages that write the translations of Moses and of the reranker.

    Moses' translations are its output if the experiment names one, otherwise the candidates with the highest totals.
    For a sentence without candidates both systems have the line of Moses' output, or an empty line.
    """
    scored, weights, output = experiment.scored(name), experiment.weights, files.moses_output
    moses, ours = (experiment.result(f"{name}.{system}") for system in (MOSES, RERANKED))
    marks, work = experiment.tuning.filters.marks, costs.choosing(name)
    moses_work = SHORT_WORK if output else work

    def write_moses() -> None:
        replacements = _replacements(files, marks)
        if replacements.lines is None:
            choose_by_total(files.nbest, replacements, moses)
        else:
            write_text(moses, "".join(f"{line}\n" for line in replacements.lines))

    def write_reranked() -> None:
        choose_by_weights(scored, load_weight_file(weights), weights, _replacements(files, marks), Outputs(ours))

    by_moses, by_weights = (output or files.nbest, files.source), (scored, files.source, weights, output)
    return [
        Stage(_of("select Moses' choices", name), by_moses, None, (moses,), write_moses, work=moses_work),
        Stage(f"rerank {name}", by_weights, None, (ours,), write_reranked, work=work),
    ]


def _replacements(files: NbestFiles, marks: bool) -> Replacements:
    """Return the lines for sentences without candidates: those of Moses' output, or empty lines."""
    if not files.moses_output:
        return read_replacements(files.source, None, "blank")
    lines = read_moses_output(files.moses_output, marks=marks).lines
    return Replacements(len(lines), lines=lines)


def _ablate(experiment: Experiment, costs: Costs) -> list[Stage]:
    """Return the stages that measure the contribution of each feature, on dev and on test sets with references.

    The weights of each ablation are tuned on dev, also for test sets.
    """
    columns, entry = _columns(experiment, experiment.sets), experiment.tuning
    if not columns:
        return []
    lists = experiment.lists("dev")
    features, folds = tuple(experiment.features), entry.fold_settings.folds
    settings = [entry.tuning.signature, entry.tuning.metric, entry.filters.text, folds, *features]
    inputs = (*lists.files, *weight_files(experiment.initial_weights))
    action = partial(write_ablation, lists, experiment.initial_weights, features, entry.tuning, folds, columns["dev"])
    stages = [Stage("ablate dev", inputs, settings, (columns["dev"],), action, work=costs.ablation())]
    for name in list(columns)[1:]:
        lists, metric = experiment.lists(name), entry.tuning.metric
        action = partial(write_column, lists, Metric(metric), columns["dev"], columns[name])
        inputs = (*lists.files, columns["dev"])
        settings, work = [metric, lists.filters.text], costs.measuring(name)
        stages.append(Stage(f"ablate {name}", inputs, settings, (columns[name],), action, work=work))
    outputs = (experiment.result("ablation.txt"), experiment.result("ablation.json"))
    action = partial(write_table, columns, outputs)
    return [*stages, Stage("ablate", tuple(columns.values()), list(columns), outputs, action, work=SHORT_WORK)]


def attend(experiment: Experiment, name: str, files: NbestFiles, device: str, costs: Costs) -> list[Stage]:
    """Return the stage that stores the attention of models on the translations of Moses and of the reranker.

    The list is empty if no feature uses a model with attention.
    """
    models, output = attentive(experiment), experiment.result(f"{name}.attention.npz")
    if not models:
        return []
    systems = {system: experiment.result(f"{name}.{system}") for system in (MOSES, RERANKED)}
    action = partial(write_attention, models, files.source, systems, device, output)
    inputs = (files.source, *systems.values(), *models.values())
    work = costs.attention(name, list(models.values()))
    return [Stage(f"attend {name}", inputs, list(models), (output,), action, separate=True, work=work)]


def attentive(experiment: Experiment) -> dict[str, str]:
    """Return the folders of models with attention that features use, by their names in the experiment.

    Raises:
        InputError: a folder that is no model.
    """
    requests = [request for request in experiment.features.values() if request.row.takes == "models"]
    names = dict.fromkeys(part for request in requests for part in request.parts)
    return {name: experiment.model(name) for name in names if _attends(experiment, name)}


def _attends(experiment: Experiment, name: str) -> bool:
    entry = experiment.models.get(name.partition("/")[0])
    return (entry.request.resolve()[0] if entry else read_config(Path(name)).architecture).attends


def evaluate(experiment: Experiment, name: str, files: NbestFiles, costs: Costs) -> Stage:
    """Return the stage that reports what reranking changed and, if there are references, the gain."""
    reranking = RerankingFiles(
        before=experiment.result(f"{name}.{MOSES}"),
        after=experiment.result(f"{name}.{RERANKED}"),
        source=files.source,
        references=files.reference,
        scored=experiment.scored(name),
        weights=experiment.weights,
        ablation=_columns(experiment, ("dev", name)),
        confidence=experiment.result(CONFIDENCE),
        gain=experiment.result(GAIN),
        attention=experiment.result(f"{name}.attention.npz") if attentive(experiment) else "",
        name=name,
        train_target=experiment.train.target,
        translations=experiment.translations(name),
    )
    inputs = (
        files.source, *files.reference, reranking.before, reranking.after, reranking.scored, reranking.weights,
        *reranking.ablation.values(), reranking.confidence, reranking.gain, reranking.attention,
        reranking.train_target if files.reference else "", *reranking.translations.values(),
    )  # fmt: skip
    filters = experiment.tuning.filters
    reports = tuple(experiment.report(name, suffix) for suffix in ("txt", "html", "json"))
    action = partial(write_report, reranking, filters, reports)
    return Stage(_of("evaluate", name), inputs, filters.text, reports, action, work=costs.evaluation(name))


def _columns(experiment: Experiment, names: Iterable[str]) -> dict[str, str]:
    """Return the paths of the ablation results by set, for sets with references. Dev always has them.

    There are none without features, or if the experiment has no ablation.
    """
    ablated = experiment.ablation and experiment.features
    judged = [name for name in names if ablated and experiment.sets[name].reference]
    return {name: experiment.result(f"{name}.ablation.json") for name in judged}


def _of(stage: str, test: str) -> str:
    """Return the name of a stage of a test set. The unnamed test set adds no name."""
    return stage if test == UNNAMED else f"{stage}, {test}"


def ingredients(experiment: Experiment, link: bool) -> Ingredients:
    """Return the ingredients of the reranker of an experiment. `link`: link to models and tables instead of copying."""
    requests = experiment.requests()
    return Ingredients(
        requests=tuple(requests),
        weights=experiment.weights,
        corpus=experiment.train,
        dev=experiment.dev.source,
        reports=tuple((name, experiment.report(name, "txt")) for name in experiment.tests),
        ablation=experiment.result("ablation.txt") if requests and experiment.ablation else "",
        confidence=experiment.result(CONFIDENCE),
        candidates=experiment.candidates,
        shortlist=experiment.result(CHOICE) if experiment.shortlist else "",
        shortlist_weights=experiment.shortlist_weights if experiment.shortlist else "",
        input_filter=experiment.input_filters.text,
        link=link,
    )


def _save_reranker(experiment: Experiment, link: bool) -> Stage:
    """Return the stage that makes the reranker, a folder that can be applied to new lists."""
    parts, train = ingredients(experiment, link), experiment.train
    requests, candidates = parts.requests, parts.candidates
    counted = (train.source, parts.dev)
    inputs = (
        parts.weights, parts.confidence, *(path for _, path in parts.reports), parts.ablation,
        *(part for request in requests if not request.row.one_list for part in request.files), *counted,
        *(path for each in candidates for path in each.paths), parts.shortlist,
        parts.shortlist_weights,
    )  # fmt: skip
    settings = {
        "features": [request.identity for request in requests],
        "reports": [name for name, _ in parts.reports],
        "link": link,
        "names": [os.path.basename(path) for path in (train.target, *counted)],
        "code": [request.folder for request in requests if runs_code(request.text)],
        "input_filter": parts.input_filter,
        "candidates": [each.identity for each in candidates],
    }

    def make(folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # a killed run may have left an incomplete folder
        make_reranker(parts, folder)

    return folder_stage("save the reranker", inputs, settings, experiment.result("reranker"), make, work=SHORT_WORK)
