"""The cells of a study: for each size, seed and system an experiment in a folder of its own, with a file to run it."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.models.training.request import ParallelFiles
from features.request import FeatureRequest, runs_code
from rerank.experiment.entries import CHOOSE, ModelEntry, NbestFiles, table_of_tests, translating
from rerank.experiment.file import Experiment, experiment_of
from rerank.experiment.studies.file import Study
from rerank.experiment.toml import parse_toml, write_experiment
from rerank.tuners.table import TUNERS
from rerank.tuning.settings import setting_names

FILE = "experiment.toml"
"""Name of the file in the folder of a cell."""

APART = 1000
"""Between the seeds that a model with a seed of its own has in one replicate and in the next."""

HEAD = ("Written by `moses-rerank study`, which has trained the models. To change it, copy it, with another output.",)
"""Comment above the experiment of a cell."""


@dataclass(frozen=True)
class Replicate:
    """A size and a seed, with the models that all systems share.

    Attributes:
        name: of its folder within the results.
        experiment: which trains the models, with all features; its folder of results is that of the replicate.
    """

    size: int
    seed: int
    name: str
    experiment: Experiment


@dataclass(frozen=True)
class Cell:
    """A system of a replicate.

    Attributes:
        name: of its folder within the results.
        path: of its experiment file.
        text: that file.
    """

    replicate: Replicate
    system: str
    name: str
    path: Path
    text: str

    @property
    def experiment(self) -> Experiment:
        """What its file says."""
        return experiment_of(parse_toml(self.text.encode(), str(self.path)), self.path.parent)


def corpus_of(study: Study, size: int) -> ParallelFiles:
    """Return the files of the first pairs; of all of them, those of the study."""
    train, folder = study.experiment.train, study.output / str(size)
    if size == study.pairs:
        return train
    source, target, alignment = (str(folder / f"train.{side}") for side in ("source", "target", "alignment"))
    return ParallelFiles(source=source, target=target, alignment=alignment if train.alignment else "")


def replicates(study: Study) -> list[Replicate]:
    """Return one for each size and seed."""
    return [_replicate(study, size, seed) for size in study.sizes for seed in study.seeds]


def _replicate(study: Study, size: int, seed: int) -> Replicate:
    name = f"{size}/seed-{seed}"
    experiment = replace(
        study.experiment,
        train=corpus_of(study, size),
        output=study.output / name,
        models={model: _seeded(entry, seed) for model, entry in study.experiment.models.items()},
    )
    return Replicate(size=size, seed=seed, name=name, experiment=experiment)


def _seeded(entry: ModelEntry, seed: int) -> ModelEntry:
    """Give a model the seed of its replicate, or another one that differs from replicate to replicate."""
    settings = entry.request.settings
    own = entry.request.settle()[1].seed + APART * (seed - 1) if "seed" in settings else seed
    return replace(entry, request=replace(entry.request, settings={**settings, "seed": own}))


def cells(study: Study, replicate: Replicate) -> list[Cell]:
    """Return one for each system."""
    cells = []
    for system in study.systems:
        name = f"{replicate.name}/{system}"
        path = study.output / name / FILE
        text = write_experiment(_values(study, replicate, system, path.parent), {"": HEAD})
        cells.append(Cell(replicate, system, name, path, text))
    return cells


def _values(study: Study, replicate: Replicate, system: str, folder: Path) -> dict[str, Any]:
    """Return the tables of the file of a cell in a folder, to which paths are relative."""
    experiment, own = replicate.experiment, study.systems[system]
    test = table_of_tests({name: _relative(files, folder) for name, files in experiment.tests.items()})
    train, models = experiment.train, {name: experiment.models[name] for name in _used(study, own)}
    leaders = _leaders(models)
    corpus = {"source": train.source, "target": train.target, "alignment": train.alignment}
    return {
        "output": ".",
        **_code(own.values(), folder),
        "trained": os.path.relpath(experiment.result("models"), folder),
        "start": os.path.relpath(experiment.start, folder),
        "train": {side: os.path.relpath(path, folder) for side, path in corpus.items() if path},
        "dev": _relative(experiment.dev, folder).table,
        **({CHOOSE: _relative(experiment.choose, folder).table} if experiment.choose else {}),
        **({"test": test} if test else {}),
        "models": {
            name: _entry(entry, models, folder) | _candidates(name, entry, leaders) for name, entry in models.items()
        },
        "features": {label: _text(study, replicate, request, folder) for label, request in own.items()},
        "tuning": _seed(study, replicate) | study.tuning,
    }


def _code(features: Iterable[FeatureRequest], folder: Path) -> dict[str, str]:
    """Return the folder of features that are code, which the file of a cell names if there are any."""
    folders = [each.folder for each in features if runs_code(each.text)]
    return {"code": os.path.relpath(folders[0], folder)} if folders else {}


def _seed(study: Study, replicate: Replicate) -> dict[str, int]:
    """Return the seed of the tuning, if there is anything random in it."""
    names = setting_names(TUNERS[study.experiment.tuning.tuning.tuner])
    return {"seed": replicate.seed} if "seed" in names else {}


def _relative(files: NbestFiles, folder: Path) -> NbestFiles:
    """Return files with paths relative to a folder."""
    references = tuple(os.path.relpath(path, folder) for path in files.reference)
    output = os.path.relpath(files.moses_output, folder) if files.moses_output else ""
    return NbestFiles(os.path.relpath(files.source, folder), references, os.path.relpath(files.nbest, folder), output)


def _used(study: Study, features: Mapping[str, FeatureRequest]) -> list[str]:
    """Return the models that a system needs, in the order of the study.

    They are those that its features read, what these start from, and those that no system reads but for their
    translations.
    """
    models = study.experiment.models
    read = _read(study, features.values())
    anywhere = _read(study, (request for system in study.systems.values() for request in system.values()))
    used = read | {name for name, entry in models.items() if entry.candidates and name not in anywhere}
    for name in reversed(models):
        if name in used and models[name].start in models:
            used.add(models[name].start)
    return [name for name in models if name in used]


def _read(study: Study, requests: Iterable[FeatureRequest]) -> set[str]:
    parts = {part.partition("/")[0] for request in requests if request.row.takes == "models" for part in request.parts}
    return parts & set(study.experiment.models)


def _entry(entry: ModelEntry, models: Iterable[str], folder: Path) -> dict[str, Any]:
    """Return the table of a model."""
    request, start = entry.request, entry.start
    flags = {"backward": request.backward, "right-to-left": request.right_to_left, "paper-sizes": request.paper_sizes}
    values = {"preset": request.preset, **{flag: on for flag, on in flags.items() if on}, **request.settings}
    if start:
        values["start-from"] = start if start in models else os.path.relpath(start, folder)
    return values


def _candidates(name: str, entry: ModelEntry, leaders: Mapping[str, str]) -> dict[str, Any]:
    """Return what the table of a model says of candidates: a number, or the leader that it translates with."""
    leader = leaders.get(name, name)
    if leader != name:
        return {"candidates": leader}
    return {"candidates": entry.candidates} if entry.candidates else {}


def _leaders(models: Mapping[str, ModelEntry]) -> dict[str, str]:
    """Return, by the name of each model that translates, one of those that it translates with."""
    together = translating(models)
    leaders = {group: group if group in names else names[0] for group, names in together.items()}
    return {name: leaders[group] for group, names in together.items() for name in names}


def _text(study: Study, replicate: Replicate, request: FeatureRequest, folder: Path) -> str:
    """Return a feature as a file in the folder names it; what it reads of the whole corpus becomes its first pairs."""
    models, whole, cut = study.experiment.models, study.experiment.train, replicate.experiment.train
    first = {Path(path).resolve(): new for path, new in zip(whole.files, cut.files, strict=True)}
    parts = []
    for part in request.parts:
        named = request.row.takes == "models" and part.partition("/")[0] in models
        parts.append(part if named else os.path.relpath(first.get(Path(part).resolve(), part), folder))
    return request.with_parts(parts).text
