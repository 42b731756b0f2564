"""An experiment: a TOML file that names corpora, lists, models and features, and the stages that follow from it."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.models.settings import check_rows, check_values
from features.models.training.request import ParallelFiles
from features.request import FeatureRequest, labelled_requests, models_and_values
from moses_io.files.errors import InputError, at
from rerank.experiment.entries import (
    CHOOSE,
    SET,
    UNNAMED,
    Groups,
    ModelEntry,
    NbestFiles,
    expand_feature,
    expand_models,
    find_start,
    grouped,
    known_folder,
    read_corpus,
    read_model,
    read_set,
    read_tests,
    translating,
)
from rerank.experiment.recipe import find_recipe, look_at
from rerank.experiment.toml import (
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
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.systems.translations import CandidateRequest, check_names, list_name
from rerank.tuners.table import AUTO, Tuning
from rerank.tuning.folds import FOLDS
from rerank.tuning.tune import Caution, settle
from rerank.tuning.tuning_set import Lists

KEYS = ("output", "start", "train", "dev", "choose", "test", "models", "features", "tuning", "trained", "code")
"""Keys of an experiment file."""

HEAD = ("Written anew by each run of an experiment that names no models and features: copy it to change it.",)
"""Comment above the experiment in full."""


@dataclass(frozen=True)
class TuningEntry:
    """How weights are tuned, and how far the result is trusted.

    Attributes:
        tuning: how weights are tuned.
        caution: what is tried on folds.
        filters: what is done to text before a metric looks at it.
        confidence: the metric that is expected of sentences.
    """

    tuning: Tuning
    caution: Caution
    filters: Filters
    confidence: str


@dataclass(frozen=True)
class Experiment:
    """All of an experiment file; paths are absolute or relative to the folder of the file.

    Models are trained on `train`; `dev` stops training and tunes the weights, from those of `start`, which Moses
    decoded with; on `choose`, if there is such a set, a way to tune is chosen; `tests`, by their names, are reranked
    and, where they have references, evaluated. Of the features, by
    their labels, `neural:NAME` uses the model of that name, `neural:NAME/forward` one of a pair. All results go to the
    folder `output`; models that were trained already are in the folder `trained`, unless that is empty. Where the file
    names neither models nor features, `text` is a file in the folder of results which names all.
    """

    train: ParallelFiles
    dev: NbestFiles
    choose: NbestFiles | None
    tests: dict[str, NbestFiles]
    start: str
    output: Path
    models: dict[str, ModelEntry]
    features: dict[str, FeatureRequest]
    tuning: TuningEntry
    text: str = ""
    trained: str = ""

    @property
    def sets(self) -> dict[str, NbestFiles]:
        """All lists by the names of their sets, dev first."""
        return {"dev": self.dev, **({CHOOSE: self.choose} if self.choose else {}), **self.tests}

    @property
    def files(self) -> list[str]:
        """The files that it reads."""
        lists = [path for part in self.sets.values() for path in part.files]
        return [*self.train.files, *lists, self.start]

    def result(self, name: str) -> str:
        """Return the path of a file or folder that it makes."""
        return str(self.output / name)

    def model(self, name: str) -> str:
        """Return the folder of a model of the experiment, or of one of a pair; another folder as it is."""
        if name.partition("/")[0] not in self.models:
            return name
        return str(Path(self.trained or self.result("models")) / name)

    @property
    def candidates(self) -> tuple[CandidateRequest, ...]:
        """Models that add candidates to the lists."""
        return tuple(
            CandidateRequest(
                list_name(name),
                tuple(self.model(f"{each}/{self.models[each].request.forward}") for each in models),
                self.models[models[0]].candidates,
            )
            for name, models in translating(self.models).items()
        )

    @property
    def weights(self) -> str:
        """The path of the weights that are tuned."""
        return self.result("weights.ini")

    def requests(self, name: str = SET) -> list[FeatureRequest]:
        """Return the features with the folders of their models, and of scores the files of a set."""
        requests = [replace(each, argument=each.argument.replace(SET, name)) for each in self.features.values()]
        return [each.with_parts([self.model(part) for part in each.parts]) for each in requests]

    def lists(self, name: str) -> Lists:
        """Return the list of a set with all features, and its references."""
        return Lists([self.scored(name)], self.sets[name].reference, self.tuning.filters)

    def nbest(self, name: str) -> str:
        """Return the path of the list of a set with the candidates of models."""
        return self.result(f"{name}.candidates.gz") if self.candidates else self.sets[name].nbest

    def scored(self, name: str) -> str:
        """Return the path of the list of a set with all candidates and features."""
        return self.result(f"{name}.nbest.gz") if self.features else self.nbest(name)

    def report(self, test: str, suffix: str) -> str:
        """Return the path of the report of a test set as `txt`, `html` or `json`."""
        return self.result(f"report.{suffix}" if test == UNNAMED else f"{test}.report.{suffix}")


def read_experiment(path: str, output: str = "", allow_code: bool = False) -> Experiment:
    """Read and check an experiment file.

    Args:
        path: of the file.
        output: folder of results in place of the file's; empty for that one.
        allow_code: whether features that are code of users may run though the file is not the user's own.

    Raises:
        InputError: the file cannot be read, a key is unknown, missing or of the wrong kind, which is named, or a
            feature runs code unless this is allowed.
    """
    values = read_toml(path)
    with at(f"{path}: "):
        check_code(values, path, allow_code)
    return _checked(values | ({"output": os.path.abspath(output)} if output else {}), path)


def parse_experiment(content: bytes, path: str) -> Experiment:
    """Check what is to become an experiment file of the user's own; errors are those of `read_experiment`."""
    return _checked(parse_toml(content, path), path)


def _checked(values: dict[str, Any], path: str) -> Experiment:
    with at(f"{path}: "):
        return experiment_of(values, Path(path).resolve().parent)


def experiment_of(values: dict[str, Any], folder: Path) -> Experiment:
    """Check the tables of an experiment file.

    Args:
        values: the tables.
        folder: to which their paths are relative.

    Raises:
        InputError: as of `read_experiment`, but for what is code.
    """
    check_keys(values, KEYS)
    if "models" not in values and "features" not in values:
        return _with_recipe(values, folder)
    entries, groups = expand_models(as_table(values.get("models", {}), "models"))
    train = read_corpus(as_table(values.get("train", {}), "train"), folder)
    models = {name: read_model(entry, f"models.{name}", train) for name, entry in entries.items()}
    models = grouped(models, groups)
    features = _features(feature_texts(values), groups, models, folder, _code(values, folder))
    texts = {label: request.text for label, request in features.items()}
    check_names(list(translating(models)), texts)
    starts = {name: find_start(name, models, folder) for name, entry in models.items() if entry.start}
    models |= {name: replace(models[name], start=start) for name, start in starts.items()}
    return Experiment(
        train=train,
        dev=read_set(values.get("dev", {}), "dev", folder),
        choose=read_set(values[CHOOSE], CHOOSE, folder) if CHOOSE in values else None,
        tests=read_tests(values.get("test", []), folder),
        start=str(folder / path_of(values, "start")),
        output=folder / path_of(values, "output"),
        models=models,
        features=features,
        tuning=_tuning(as_table(values.get("tuning", {}), "tuning"), bool(features), CHOOSE in values),
        trained=str(folder / path_of(values, "trained")) if "trained" in values else "",
    )


def _code(values: dict[str, Any], folder: Path) -> str:
    """Return the folder in which commands run and modules are looked for."""
    code = os.path.realpath(folder / path_of(values, "code")) if "code" in values else str(folder)
    if not os.path.isdir(code):
        raise InputError(f"code: no such folder {values['code']!r}")
    return code


def _with_recipe(values: dict[str, Any], folder: Path) -> Experiment:
    """Choose models and features by looking at the corpus and dev."""
    train, dev = (
        read_corpus(as_table(values.get("train", {}), "train"), folder),
        read_set(values.get("dev", {}), "dev", folder),
    )
    recipe = find_recipe(look_at(train, dev.texts))
    experiment = experiment_of({**values, "models": recipe.models, "features": recipe.features}, folder)
    tables = {"models": recipe.models, "features": recipe.features}
    tables |= {"tuning": values["tuning"]} if "tuning" in values else {}
    files = moved(values, folder, experiment.output.resolve())
    text = write_experiment({**files, "output": ".", **tables}, {"": HEAD, "models": recipe.remarks})
    return replace(experiment, text=text)


def _tuning(values: dict[str, Any], new: bool, choosing: bool) -> TuningEntry:
    """Read how to tune; by default `new` features that gain nothing on folds leave the start weights."""
    settings = dict(values)
    filters, folds = settings.pop("filter", ""), settings.pop("folds", FOLDS if new else 0)
    fallback, ablate = settings.pop("fallback", bool(folds)), settings.pop("ablate", False)
    expected = settings.pop("confidence", None)
    with at("tuning: "):
        tuning, caution = settle(settings), Caution(folds=folds, fallback=fallback, ablate=ablate)
        if choosing and tuning.tuner != AUTO:
            raise InputError(f"tuner: {tuning.tuner} chooses nothing on the list of [{CHOOSE}]; {AUTO} does")
        expected = tuning.metric if expected is None else expected
        with at("confidence: "):
            Metric(expected)
        return TuningEntry(tuning, caution, Filters(filters), confidence=expected)


def _features(
    texts: dict[str, str], groups: Groups, models: dict[str, ModelEntry], folder: Path, code: str
) -> dict[str, FeatureRequest]:
    """Read features, one of a group once for each of its models; what is code is in the folder `code`."""
    features: dict[str, FeatureRequest] = {}
    requests = labelled_requests(texts, code)
    for request in (member for each in requests for member in expand_feature(each, groups)):
        with at(f"features.{request.label}: "):
            if request.label == "all":
                raise InputError("reports say so of all features; choose another name")
            if request.label in features:
                raise InputError("a group of models makes a feature of this name, too")
            if request.parts and SET in str(folder):
                raise InputError(f"{SET} stands for the name of a set; the folder {str(folder)!r} cannot be called so")
            parts = [str(folder / part) for part in request.parts]
            if request.row.takes == "models":
                parts = [_model_folder(part, models, folder) for part in request.parts]
                _check_values(request, models)
            features[request.label] = request.with_parts(parts)
    return features


def _model_folder(name: str, models: dict[str, ModelEntry], folder: Path) -> str:
    """Return the name of a model, or of one of a pair, as it is, or the path of a folder that is there."""
    entry, _, part = name.partition("/")
    if entry not in models:
        return known_folder(name, models, folder)
    if part not in models[entry].request.folders:
        names = " and ".join(f"{entry}/{member}".rstrip("/") for member in models[entry].request.folders)
        raise InputError(f"no model {name!r} here; there is {names}")
    return name


def _check_values(request: FeatureRequest, models: dict[str, ModelEntry]) -> None:
    """Refuse a feature that a model, once it is trained, could not give."""
    names = models_and_values(request.kind, request.argument)[1] if request.row.reads == "values" else ()
    for part, direction in zip(request.parts, ("forward", "backward"), strict=False):
        entry = models.get(part.partition("/")[0])
        if entry is None:
            continue
        architecture, training = entry.request.settle()
        if part == request.parts[0]:
            with at(f"{part!r}: "):
                check_values(names, architecture)
        if request.row.reads == "attention":
            if (direction == "backward") != (entry.request.backward or part.endswith("/backward")):
                raise InputError(f"expected a {direction} model, {part!r} is not one")
            with at(f"{part!r}: "):
                check_rows(architecture, training, entry.request.right_to_left)
