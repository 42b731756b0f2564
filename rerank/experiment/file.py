"""An experiment: a TOML file that names corpora, lists, models and features, and the stages that follow from it."""

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features.models.settings import check_rows
from features.models.training.request import ParallelFiles, TrainingRequest
from features.request import FeatureRequest, parse_requests, split_values
from moses_io.errors import InputError, nearest
from rerank.experiment.groups import expand_feature, expand_models
from rerank.metrics.filters import Filters
from rerank.tuners.table import Tuning, settle
from rerank.tuning.tune import FOLDS, Caution

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class NbestFiles:
    """A source text, its references, and the list of its candidates."""

    source: str
    reference: tuple[str, ...]
    nbest: str


@dataclass(frozen=True)
class ModelEntry:
    """A model, or a pair of them, to train; `start` is what it starts from: another entry, a folder, or nothing."""

    request: TrainingRequest
    start: str = ""


@dataclass(frozen=True)
class TuningEntry:
    """How weights are tuned, and what is asked of the result."""

    tuning: Tuning
    caution: Caution
    filters: Filters


@dataclass(frozen=True)
class Experiment:
    """All of an experiment file; paths are absolute or relative to the folder of the file.

    Attributes:
        train: corpus of the models.
        dev: set that stops training and tunes the weights.
        test: set that is reranked and evaluated.
        start: weights to start from, those that Moses decoded with.
        output: folder for all results.
        models: by name; a feature `neural:NAME` uses them, `neural:NAME/forward` one of a pair.
        features: label to KIND[:ARG].
        tuning: settings of the tuner, whether features are looked at on folds, and what is done to text before a
            metric looks at it.
    """

    train: ParallelFiles
    dev: NbestFiles
    test: NbestFiles
    start: str
    output: Path
    models: dict[str, ModelEntry]
    features: dict[str, str]
    tuning: TuningEntry

    @property
    def files(self) -> list[str]:
        """The files that it reads."""
        sets = [path for part in (self.dev, self.test) for path in (part.source, *part.reference, part.nbest)]
        return [self.train.source, self.train.target, *sets, self.start]

    def result(self, name: str) -> str:
        """Return the path of a file or folder that it makes."""
        return str(self.output / name)


def read_experiment(path: str) -> Experiment:
    """Read and check an experiment file.

    Raises:
        InputError: the file cannot be read, or a key is unknown, missing or of the wrong kind; the key is named.
    """
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        return experiment_from(values, Path(path).resolve().parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_from(values: dict[str, Any], folder: Path) -> Experiment:
    """Make an experiment of the values of its file."""
    _check_keys(values, Experiment, "")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for features `module:Class` in a file beside the experiment
    entries, groups = expand_models(_table(values, "models"))
    models = {name: _model(entry, f"models.{name}") for name, entry in entries.items()}
    asked = parse_requests([f"{label}={text}" for label, text in _table(values, "features").items()])
    features: dict[str, str] = {}
    for request in (one for each in asked for one in expand_feature(each, groups)):
        if request.label in features:
            raise InputError(f"features.{request.label}: a group of models makes a feature of this name, too")
        if request.row.takes == "models":
            place = f"features.{request.label}"
            parts = [_model_folder(part, models, folder, place) for part in request.parts]
            _check_values(request, models, place)
        else:
            parts = [str(folder / part) for part in request.parts]
        features[request.label] = request.with_parts(parts).text
    for name, entry in models.items():
        if entry.start:
            models[name] = dataclasses.replace(entry, start=_start(name, models, folder))
    return Experiment(
        train=ParallelFiles(**_paths(values, "train", ParallelFiles, folder)),
        dev=NbestFiles(**_paths(values, "dev", NbestFiles, folder)),
        test=NbestFiles(**_paths(values, "test", NbestFiles, folder)),
        start=str(folder / _string(values, "start")),
        output=folder / _string(values, "output"),
        models=models,
        features=features,
        tuning=_tuning(_table(values, "tuning"), bool(features)),
    )


def _tuning(values: dict[str, Any], new: bool) -> TuningEntry:
    """Read how to tune; unless told otherwise, new features that gain nothing on folds leave the start weights."""
    given = dict(values)
    filters, folds = given.pop("filter", ""), given.pop("folds", FOLDS if new else 0)
    fallback, ablate = given.pop("fallback", bool(folds)), given.pop("ablate", False)
    try:
        return TuningEntry(settle(given), Caution(folds, fallback, ablate), Filters(filters))
    except InputError as error:
        raise InputError(f"tuning.{error}") from None


def _model_folder(name: str, models: dict[str, ModelEntry], folder: Path, place: str) -> str:
    """Return the name of a model, or of one of a pair, as it is, or the path of a folder that is there."""
    entry, _, part = name.partition("/")
    if entry not in models:
        return _known_folder(name, models, folder, place)
    if part not in models[entry].request.folders:
        names = " and ".join(f"{entry}/{one}".rstrip("/") for one in models[entry].request.folders)
        raise InputError(f"{place}: no model {name!r} here; there is {names}")
    return name


def _check_values(request: FeatureRequest, models: dict[str, ModelEntry], place: str) -> None:
    """Refuse a feature that a model, once it is trained, could not give."""
    for part, direction in zip(request.parts, ("forward", "backward"), strict=False):
        entry = models.get(part.partition("/")[0])
        if entry is None:
            continue
        architecture, training = entry.request.settle()
        if "fertility" in split_values(request.argument)[1] and "fertility" not in architecture.objectives:
            raise InputError(f"{place}: {part!r} has no global fertility, which the value fertility needs")
        if request.kind not in ("agreement", "links"):
            continue
        if (direction == "backward") != (entry.request.backward or part.endswith("/backward")):
            raise InputError(f"{place}: expected a {direction} model, {part!r} is not one")
        try:
            check_rows(architecture, training, entry.request.right_to_left)
        except InputError as error:
            raise InputError(f"{place}: {part!r}: {error}") from None


def _start(name: str, models: dict[str, ModelEntry], folder: Path) -> str:
    """Return what a model starts from, checked as far as it can be before anything is trained."""
    place, start = f"models.{name}.start-from", models[name].start
    if start not in models:
        return _known_folder(start, models, folder, place)
    if start in list(models)[list(models).index(name) :]:
        raise InputError(f"{place}: put {start!r} before {name!r}")
    try:
        models[name].request.check_start(models[start].request)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    return start


def _known_folder(name: str, models: dict[str, ModelEntry], folder: Path, place: str) -> str:
    if not (folder / name).is_dir():
        known = f"; models: {', '.join(models)}" if models else ""
        raise InputError(f"{place}: no model and no folder {name!r}{known}")
    return str(folder / name)


def _model(entry: Any, place: str) -> ModelEntry:
    if not isinstance(entry, dict) or not isinstance(entry.get("preset"), str):
        raise InputError(f"{place}: expected a table with a preset")
    given = dict(entry)
    preset, start = given.pop("preset"), str(given.pop("start-from", ""))
    switches = {}
    for key in ("backward", "right-to-left", "paper-sizes"):
        switches[key.replace("-", "_")] = given.pop(key, False)
        if not isinstance(switches[key.replace("-", "_")], bool):
            raise InputError(f"{place}.{key}: expected true or false, found {entry[key]!r}")
    request = TrainingRequest(preset, **switches, settings=given)
    try:
        request.check(start)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    return ModelEntry(request, start)


def _paths(values: dict[str, Any], name: str, kind: type, folder: Path) -> dict[str, Any]:
    table = _table(values, name)
    _check_keys(table, kind, f"{name}.")
    paths: dict[str, Any] = {}
    for key in (item.name for item in dataclasses.fields(kind)):
        if key == "reference":
            found = table.get(key)
            references = found if isinstance(found, list) and found else [_string(table, key, f"{name}.")]
            paths[key] = tuple(str(folder / str(reference)) for reference in references)
        else:
            paths[key] = str(folder / _string(table, key, f"{name}."))
    return paths


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name}: expected a table, found {found!r}")
    return found


def _string(values: dict[str, Any], name: str, prefix: str = "") -> str:
    found = values.get(name)
    if not isinstance(found, str):
        raise InputError(f"{prefix}{name}: expected a path, found {'nothing' if found is None else repr(found)}")
    return found


def _check_keys(values: dict[str, Any], kind: type, prefix: str) -> None:
    known = [item.name for item in dataclasses.fields(kind)]
    for name in values:
        if name not in known:
            raise InputError(f"unknown key {prefix}{name}{nearest(name, known)}")
