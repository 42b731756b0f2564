"""The experiment file (TOML), which names corpora, n-best lists, models and features."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from features.models.settings import check_rows, check_values
from features.request import FeatureRequest, labelled_requests, models_and_values, runs_code
from moses_io.files.errors import InputError, at
from moses_io.filters import Filters
from moses_io.input_filters import InputFilters
from rerank.experiment.entries import (
    BACK_TRANSLATION,
    SELECTION,
    SET,
    ShortlistEntry,
    read_back_translation,
    read_corpus,
    read_monolingual,
    read_pretrained,
    read_set,
    read_shortlist,
    read_tests,
)
from rerank.experiment.experiment import Experiment, TuningEntry, Unplanned
from rerank.experiment.model_entries import (
    Groups,
    ModelEntry,
    expand_feature,
    expand_models,
    find_pretrained_model,
    grouped,
    known_folder,
    read_model,
    translating,
)
from rerank.experiment.recipe import CONSENSUS, LABELS, Recipe
from rerank.experiment.toml import (
    INPUT_FILTER,
    as_table,
    check_code,
    check_keys,
    feature_texts,
    moved,
    parse_toml,
    path_of,
    read_toml,
    write_experiment,
)
from rerank.metrics.metric import Metric
from rerank.systems.translations import CandidateRequest, check_names
from rerank.tuners.table import AUTO
from rerank.tuning.folds import FOLDS
from rerank.tuning.tune import FoldSettings, make_tuning

KEYS = (
    "minutes", "apply_seconds", "output", INPUT_FILTER, "initial_weights", "train", "dev", SELECTION, "test",
    "models", "pretrained", "features", "shortlist", "tuning", "report", "trained_models", "code",
)  # fmt: skip
"""Keys of an experiment file."""

HEAD = ("Overwritten by each run of an experiment that names no models. To change it, make a copy.",)
"""Comment lines at the top of the complete experiment file that a run without models writes."""

MINUTES = 25.0
"""Default minutes of a run that chooses its models."""

MAX_MINUTES, MAX_SECONDS = 1e5, 1e7
"""Maximum values of `minutes`, about 70 days, and of `apply_seconds`."""


def read_experiment(path: str, output: str = "", allow_code: bool = False, minutes: float | None = None) -> Experiment:
    """Read and check an experiment file.

    Args:
        path: the file.
        output: folder of results that replaces the one in the file (default: the one in the file).
        allow_code: whether features may run code of users even if the file is not the user's own (`is_own`).
        minutes: time of a run, which replaces the one in the file (default: the one in the file).

    Raises:
        InputError: the file cannot be read, a key is unknown, missing or of the wrong type, a feature runs code without
            permission, or the file is where a run writes the models that it chooses.
    """
    values = read_toml(path)
    with at(f"{path}: "):
        check_code(values, path, allow_code)
    values |= {"output": os.path.abspath(output)} if output else {}
    experiment = _checked(values | ({} if minutes is None else {"minutes": minutes}), path)
    if experiment.unplanned and os.path.realpath(path) == os.path.realpath(experiment.planned_file):
        raise InputError(f"{path}: `run` would write the models that it chooses over this file. Use another `output`")
    return experiment


def parse_experiment(content: bytes, path: str) -> Experiment:
    """Parse and check the content of the user's own experiment file. Raise as `read_experiment` does."""
    return _checked(parse_toml(content, path), path)


def _checked(values: dict[str, Any], path: str) -> Experiment:
    with at(f"{path}: "):
        return experiment_of(values, Path(path).resolve().parent)


def experiment_of(values: dict[str, Any], folder: Path) -> Experiment:
    """Check the tables of an experiment file. The caller decides whether features may run code.

    Args:
        values: the tables.
        folder: base folder of relative paths.

    Raises:
        InputError: a key is unknown, missing or of the wrong type, or settings are incompatible.
    """
    check_keys(values, KEYS)
    unplanned, filters = _unplanned(values, folder), InputFilters(values.get(INPUT_FILTER, ""))
    entries, groups = expand_models(as_table(values.get("models", {}), "models"))
    corpus = as_table(values.get("train", {}), "train")
    train = read_corpus(corpus, folder)
    models = {name: read_model(entry, f"models.{name}", train) for name, entry in entries.items()}
    models = grouped(models, groups)
    features = _features(feature_texts(values), groups, models, folder, _code(values, folder))
    texts = {label: request.text for label, request in features.items()}
    dev = read_set(values.get("dev", {}), "dev", folder)
    translators = read_pretrained(as_table(values.get("pretrained", {}), "pretrained"), folder, dev, filters)
    pretrained = dict(zip(values.get("pretrained", {}), translators, strict=True))
    if unplanned:
        unplanned = replace(unplanned, values=unplanned.values | _resolved(features, pretrained, folder))
    names = {f"models.{name}": name for name in translating(models)}
    check_names(names | {f"pretrained.{name}": name for name in pretrained}, texts)
    for name, entry in models.items():
        if entry.pretrained_model:
            models[name] = replace(entry, pretrained_model=find_pretrained_model(name, models, folder))
    requests = {name: entry.request for name, entry in models.items()}
    back_translation = read_back_translation(corpus, unplanned is not None)
    return Experiment(
        train=train,
        monolingual=read_monolingual(corpus, folder, requests, unplanned is not None, back_translation),
        back_translation=back_translation,
        dev=dev,
        selection=read_set(values[SELECTION], SELECTION, folder) if SELECTION in values else None,
        tests=read_tests(values.get("test", []), folder),
        initial_weights=str(folder / path_of(values, "initial_weights")),
        output=folder / path_of(values, "output"),
        models=models,
        pretrained=translators,
        features=features,
        tuning=_tuning(as_table(values.get("tuning", {}), "tuning"), bool(features or unplanned), SELECTION in values),
        shortlist=_shortlist(values, features, unplanned is not None),
        ablation=_reports(as_table(values.get("report", {}), "report")),
        trained_models=str(folder / path_of(values, "trained_models")) if "trained_models" in values else "",
        unplanned=unplanned,
        input_filters=filters,
    )


def _unplanned(values: dict[str, Any], folder: Path) -> Unplanned | None:
    """Return the tables if models are to be chosen: with a time, or with neither models nor features."""
    named = [key for key in ("models", "trained_models") if key in values]
    times = {
        key: _time(key, values[key], maximum)
        for key, maximum in (("minutes", MAX_MINUTES), ("apply_seconds", MAX_SECONDS))
        if key in values
    }
    if named and times:
        raise InputError(
            f"{next(iter(times))}: cannot be combined with {named[0]}, which names the models. Remove one of them"
        )
    if named or ("features" in values and not times):
        return None
    tables = {key: value for key, value in values.items() if key not in times}
    return Unplanned(times.get("minutes", MINUTES), times.get("apply_seconds"), tables, folder)


def _resolved(
    features: Mapping[str, FeatureRequest], pretrained: Mapping[str, CandidateRequest], folder: Path
) -> dict[str, Any]:
    """Return `[features]` and `[pretrained]` with inferred options, which plans then need not infer again.

    Paths begin with `./`: a plan may have a model with the name of a folder.
    """
    tables: dict[str, Any] = {}
    if features:
        tables["features"] = {
            label: request.with_parts([os.path.join(".", os.path.relpath(part, folder)) for part in request.parts]).text
            for label, request in features.items()
        }
    if pretrained:
        tables["pretrained"] = _translators(pretrained, folder)
    return tables


def _translators(pretrained: Mapping[str, CandidateRequest], folder: Path) -> dict[str, Any]:
    """Return the table `[pretrained]`, with paths relative to `folder`."""
    moved_requests = {
        name: request.moved(lambda path: os.path.relpath(path, folder)) for name, request in pretrained.items()
    }
    return {name: {"model": each.folders[0], "candidates": each.size} for name, each in moved_requests.items()}


def _time(key: str, value: Any, maximum: float) -> float:
    """Return a number of minutes or seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= maximum:
        raise InputError(f"{key}: expected a number above 0 and up to {maximum:,.0f}, found {value!r}")
    return float(value)


def with_recipe(tables: Unplanned, recipe: Recipe, comments: Sequence[str] = ()) -> Experiment:
    """Return the experiment with the models of a recipe.

    Features and labels of the shortlist are added to those of the tables. The tables `[tuning]` and `[report]`
    replace those of the recipe.

    Args:
        tables: tables of the experiment file.
        recipe: models, their settings and features.
        comments: comment lines that describe the models.

    Raises:
        InputError: a feature or a setting of the tables does not fit the models.
    """
    values = tables.values | {"train": _train(tables.values, recipe)}
    replaced: dict[str, Any] = {key: values[key] for key in ("tuning", "report") if key in values}
    whole: dict[str, Any] = {**recipe.tables, **replaced, "features": recipe.features | feature_texts(values)}
    if shortlist := _merged_shortlist(as_table(values.get("shortlist", {}), "shortlist"), recipe):
        whole["shortlist"] = shortlist
    others = {key: value for key, value in values.items() if key != "shortlist"}
    experiment = experiment_of(others | whole, tables.folder)
    new = experiment.output.resolve()
    texts = {label: _moved_text(experiment.features[label], recipe, new) for label in whole["features"]}
    if pretrained := dict(zip(values.get("pretrained", {}), experiment.pretrained, strict=True)):
        whole["pretrained"] = _translators(pretrained, new)
    files = moved(values, tables.folder, new)
    if code := next((each.folder for each in experiment.features.values() if runs_code(each.text)), ""):
        files["code"] = os.path.relpath(code, new)
    written = {**files, "output": ".", **whole, "features": texts}
    text = write_experiment(written, {"": HEAD, "models": (*recipe.comments, *comments)})
    return replace(experiment, text=text)


def _train(values: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Return the table of the corpus. Only language models of a recipe train on monolingual text."""
    table = as_table(values.get("train", {}), "train")
    train = {key: value for key, value in table.items() if key != "monolingual"}
    if recipe.monolingual:
        train |= {"monolingual": table["monolingual"], BACK_TRANSLATION: False}
    return train


def _merged_shortlist(own: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Return the table `[shortlist]`, without labels of models that are not in the recipe. An own `size` is kept."""
    labels = [label for label in own.get("features", ()) if label in recipe.features or label not in LABELS.values()]
    labels += [label for label in recipe.shortlist.get("features", ()) if label not in labels]
    return {**recipe.shortlist, **own, "features": labels} if labels else {}


def _moved_text(request: FeatureRequest, recipe: Recipe, folder: Path) -> str:
    """Return a feature as text, with paths relative to `folder`."""
    names = recipe.models if request.row.takes == "models" else {}
    return request.with_parts([part if part in names else os.path.relpath(part, folder) for part in request.parts]).text


def _code(values: dict[str, Any], folder: Path) -> str:
    """Return the folder in which commands run and in which modules of users are searched."""
    code = os.path.realpath(folder / path_of(values, "code")) if "code" in values else str(folder)
    if not os.path.isdir(code):
        raise InputError(f"code: no such folder {values['code']!r}")
    return code


def _shortlist(values: dict[str, Any], features: dict[str, FeatureRequest], unplanned: bool) -> ShortlistEntry | None:
    """Read the table `[shortlist]`, if there is one. If models are still to be chosen, it is only checked."""
    if "shortlist" not in values:
        return None
    entry = read_shortlist(values["shortlist"], features, (*LABELS.values(), CONSENSUS) if unplanned else ())
    return None if unplanned else entry


def _reports(values: dict[str, Any]) -> bool:
    """Read the table `[report]`: whether reports have an ablation."""
    check_keys(values, ("ablation",), "report.")
    ablation = values.get("ablation", True)
    if not isinstance(ablation, bool):
        raise InputError(f"report.ablation: expected true or false, found {ablation!r}")
    return ablation


def _tuning(values: dict[str, Any], new: bool, choosing: bool) -> TuningEntry:
    """Read the table `[tuning]`.

    With features in the experiment (`new`), the default is cross-validation with a fallback to the initial weights.
    """
    settings = dict(values)
    filters, folds = settings.pop("filter", ""), settings.pop("folds", FOLDS if new else 0)
    fallback, ablate = settings.pop("fallback", bool(folds)), settings.pop("ablate", False)
    confidence = settings.pop("confidence", None)
    with at("tuning: "):
        tuning, fold_settings = make_tuning(settings), FoldSettings(folds=folds, fallback=fallback, ablate=ablate)
        if choosing and tuning.tuner != AUTO:
            raise InputError(f"tuner: {tuning.tuner} does not use the list of [{SELECTION}], only {AUTO} does")
        if tuning.tuner == AUTO and folds == 2 and not choosing:
            raise InputError(f"folds: {AUTO} needs at least 3 without [{SELECTION}], found 2")
        confidence = tuning.metric if confidence is None else confidence
        with at("confidence: "):
            Metric(confidence)
        return TuningEntry(tuning, fold_settings, Filters(filters), confidence)


def _features(
    texts: dict[str, str], groups: Groups, models: dict[str, ModelEntry], folder: Path, code: str
) -> dict[str, FeatureRequest]:
    """Read the features. A feature of a group of models becomes one feature for each model.

    `code` is the folder in which commands run and in which modules of users are searched.
    """
    features: dict[str, FeatureRequest] = {}
    requests = labelled_requests(texts, code)
    for request in (member for each in requests for member in expand_feature(each, groups)):
        with at(f"features.{request.label}: "):
            if request.label in features:
                raise InputError("a group of models also makes a feature of this name")
            if request.parts and SET in str(folder):
                raise InputError(
                    f"{SET} stands for the name of a set. The folder {str(folder)!r} cannot have it in its name"
                )
            parts = [str(folder / part) for part in request.parts]
            if request.row.takes == "models":
                parts = [_model_folder(part, models, folder) for part in request.parts]
                _check_values(request, models)
            features[request.label] = request.with_parts(parts)
    return features


def _model_folder(name: str, models: dict[str, ModelEntry], folder: Path) -> str:
    """Return the name of a model of the experiment unchanged, or the path of an existing model folder."""
    entry, _, part = name.partition("/")
    if entry not in models:
        return known_folder(name, models, folder)
    if part not in models[entry].request.folders:
        names = " or ".join(f"{entry}/{member}".rstrip("/") for member in models[entry].request.folders)
        raise InputError(f"no model {name!r}. Expected {names}")
    return name


def _check_values(request: FeatureRequest, models: dict[str, ModelEntry]) -> None:
    """Raise `InputError` if a feature asks for values or attention that its model will not have after training."""
    names = models_and_values(request.kind, request.argument)[1] if request.row.reads == "values" else ()
    for part, direction in zip(request.parts, ("forward", "backward"), strict=False):
        entry = models.get(part.partition("/")[0])
        if entry is None:
            continue
        architecture, training = entry.request.resolve()
        if part == request.parts[0]:
            with at(f"{part!r}: "):
                check_values(names, architecture)
        if request.row.reads == "attention":
            if (direction == "backward") != (entry.request.backward or part.endswith("/backward")):
                raise InputError(f"expected a {direction} model, {part!r} is not one")
            with at(f"{part!r}: "):
                check_rows(architecture, training, entry.request.right_to_left)
