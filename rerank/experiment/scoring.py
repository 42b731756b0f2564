"""Stages that make the scored lists of all sets: translate, score, join, and shorten if there is a shortlist."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from features.feature import Resources
from features.request import FeatureRequest, group_by_models
from moses_io.nbest import read_moses_output
from moses_io.weights import weight_files
from rerank.experiment.costs import Costs
from rerank.experiment.entries import ShortlistEntry
from rerank.experiment.experiment import Experiment
from rerank.experiment.stages import Stage
from rerank.linear.shortlist import shorten_list
from rerank.lists.append import join_features, write_features
from rerank.systems.translations import MIN_LENGTH, merge_translations
from rerank.tuning.folds import FOLDS
from rerank.tuning.shortlist import CHOICE, FORMAT, SIZES, choose_shortlist, read_choice, write_choice
from rerank.tuning.tune import FoldSettings, make_tuning, tune


def scoring_stages(experiment: Experiment, resources: Resources, costs: Costs) -> list[Stage]:
    """Return the stages that make the scored lists."""
    translated = experiment.sets if experiment.candidates else ()
    stages = [_translate(experiment, name, resources, costs) for name in translated]
    for name in experiment.sets:
        first, _ = experiment.split_requests(name)
        nbest, whole = experiment.nbest(name), experiment.whole(name)
        stages += _score(experiment, name, first, nbest, whole, resources, costs)
    if experiment.shortlist:
        stages += _shortlist(experiment, experiment.shortlist, resources, costs)
    return stages


def _translate(experiment: Experiment, name: str, resources: Resources, costs: Costs) -> Stage:
    """Return the stage that adds candidates of models to a list."""
    files = experiment.sets[name]
    requests = experiment.candidates
    output = experiment.nbest(name)
    settings = [[each.identity for each in requests], resources.precision, MIN_LENGTH]
    inputs = (files.nbest, files.source, *(path for each in requests for path in each.paths))
    alone = experiment.translations(name)
    action = partial(merge_translations, files.nbest, files.source, requests, output, resources, alone)
    outputs, work = (output, *alone.values()), costs.translation(name)
    return Stage(f"translate {name}", inputs, settings, outputs, action, separate=True, work=work)


def _score(
    experiment: Experiment,
    name: str,
    requests: list[FeatureRequest],
    nbest: str,
    scored: str,
    resources: Resources,
    costs: Costs,
    size: int = 0,
) -> list[Stage]:
    """Return the stages that score a list, and one that joins the features to the list.

    Features that use the same model are scored in one stage, so that the model runs only once.

    Args:
        experiment: the experiment.
        name: name of the set.
        requests: features to compute. If there are none, there are no stages.
        nbest: path of the list.
        scored: path of the list with the features.
        resources: device, precision and cache of features.
        costs: expected work of the stages.
        size: expected number of candidates of a sentence, 0 for the whole list.
    """
    if not requests:
        return []
    stages, source = [], experiment.sets[name].source
    for group in group_by_models(requests):
        output = experiment.result(f"{name}.{group[0].label}.features.gz")
        inputs = (nbest, source, *(part for request in group for part in request.files))
        settings = scoring_settings(group, resources)
        action = partial(write_features, nbest, source, group, output, resources)
        label, work = group[0].label, costs.scoring(name, group, size)
        stages.append(Stage(f"score {name} {label}", inputs, settings, (output,), action, separate=True, work=work))
    columns = [stage.outputs[0] for stage in stages]
    action = partial(join_features, nbest, columns, scored)
    target = name if scored == experiment.whole(name) else f"{name} shortlist"
    work = costs.reading(name, size)
    return [*stages, Stage(f"join {target}", (nbest, *columns), None, (scored,), action, separate=True, work=work)]


def scoring_settings(group: Sequence[FeatureRequest], resources: Resources) -> list[Any]:
    """Return the settings of the stage that scores features that use the same model."""
    of_models = group[0].row.takes in ("models", "folder")
    return [[request.identity for request in group], resources.precision if of_models else ""]


def _shortlist(experiment: Experiment, entry: ShortlistEntry, resources: Resources, costs: Costs) -> list[Stage]:
    """Return the stages that tune the weights of the shortlist, choose its size, and score the shorter lists.

    The list of dev has the candidates of the largest size until the size is chosen.
    """
    weights, start = experiment.shortlist_weights, experiment.initial_weights
    folds = experiment.tuning.fold_settings.folds
    lists, metric = experiment.lists("dev"), experiment.tuning.tuning.metric
    tuning, sizes = make_tuning({"metric": metric}), (entry.size,) if entry.size else SIZES
    short, longest = experiment.result("dev.shortlist.gz"), experiment.result("dev.longest.nbest.gz")
    whole, scored = (replace(lists, nbest=[path]) for path in (experiment.whole("dev"), longest))
    choice, output = experiment.result(CHOICE), experiment.scored("dev")

    printed, marks = experiment.dev.moses_output, experiment.tuning.filters.marks

    def choose() -> None:
        chosen = choose_shortlist(whole, scored, (start, weights), entry.features, sizes, metric, folds or FOLDS)
        moses_output = read_moses_output(printed, marks=marks) if printed else None
        shorten_list(short, weights, chosen.settings.size, output, longest, moses_output)
        write_choice(choice, chosen)

    settings: list[Any] = [tuning.signature, metric, lists.signature]
    inputs = (*whole.files, *weight_files(start))
    action = partial(tune, whole, start, tuning, weights, FoldSettings())
    stages = [Stage("tune the shortlist", inputs, settings, (weights,), action, work=costs.tuning_shortlist())]
    stages += _shorten(experiment, "dev", max(sizes), longest, resources, costs)
    settings = [*settings, list(sizes), list(entry.features), folds, FORMAT]
    inputs, work = (*inputs, weights, short, longest, printed), costs.choosing_shortlist(sizes)
    stages.append(Stage("choose the shortlist", inputs, settings, (choice, output), choose, work=work))
    for name in list(experiment.sets)[1:]:
        stages += _shorten(experiment, name, choice, experiment.scored(name), resources, costs)
    return stages


def _shorten(
    experiment: Experiment, name: str, size: int | str, scored: str, resources: Resources, costs: Costs
) -> list[Stage]:
    """Return the stages that shorten the list of a set and compute the features of the shortlist.

    Args:
        experiment: the experiment.
        name: name of the set.
        size: number of candidates of a sentence, or path of the choice.
        scored: path of the shorter list with all features.
        resources: device, precision and cache of features.
        costs: expected work of the stages.
    """
    whole, weights = experiment.whole(name), experiment.shortlist_weights
    output, choice = experiment.result(f"{name}.shortlist.gz"), size if isinstance(size, str) else ""
    printed, marks = experiment.sets[name].moses_output, experiment.tuning.filters.marks
    action = partial(_shorten_to, whole, weights, size, output, printed, marks)
    settings = None if choice else size
    inputs, work = (whole, weights, choice, printed), costs.reading(name)
    stage = Stage(f"shorten {name}", inputs, settings, (output,), action, separate=True, work=work)
    _, late = experiment.split_requests(name)
    expected = size if isinstance(size, int) else costs.shortlist
    return [stage, *_score(experiment, name, late, output, scored, resources, costs, expected)]


def _shorten_to(nbest: str, weights: str, size: int | str, output: str, printed: str, marks: bool) -> None:
    size = read_choice(size).settings.size if isinstance(size, str) else size
    moses_output = read_moses_output(printed, marks=marks) if printed else None
    shorten_list(nbest, weights, size, output, moses_output=moses_output)
