"""The cells of a study: one experiment for each size, seed and system, in its own folder with its own file."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from features.request import FeatureRequest, runs_code
from moses_io.files.text import ParallelFiles
from rerank.experiment.entries import SELECTION, table_of_tests
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import experiment_of
from rerank.experiment.model_entries import ModelEntry, translating
from rerank.experiment.studies.file import Study
from rerank.experiment.toml import with_paths, write_experiment
from rerank.tuners.table import TUNERS
from rerank.tuning.tune import setting_names

FILE = "experiment.toml"
"""Name of the experiment file in the folder of a cell."""

SEED_STEP = 1000
"""Difference between the seeds of successive replicates for a model that has a `seed` setting."""

HEAD = ("Written by `moses-rerank study`, which has trained the models. To change it, copy it, with another output.",)
"""Comment line at the top of the experiment file of a cell."""


@dataclass(frozen=True)
class Replicate:
    """A size and a seed, with the models that all systems share.

    Attributes:
        size: sentence pairs.
        seed: random seed.
        name: name of its folder in the folder of results.
        experiment: experiment that trains the models. It has all features, and its folder of results is that of the
            replicate.
    """

    size: int
    seed: int
    name: str
    experiment: Experiment


@dataclass(frozen=True)
class Cell:
    """A system of a replicate.

    Attributes:
        replicate: size, seed and models.
        system: name of the system.
        name: name of its folder in the folder of results.
        path: its experiment file.
        values: tables of the experiment file.
    """

    replicate: Replicate
    system: str
    name: str
    path: Path
    values: dict[str, Any]

    @property
    def text(self) -> str:
        """Content of the experiment file."""
        return write_experiment(self.values, {"": HEAD})

    @property
    def experiment(self) -> Experiment:
        """The experiment of the file. Model folders that it names must exist."""
        return experiment_of(self.values, self.path.parent)


def corpus_of(study: Study, size: int) -> ParallelFiles:
    """Return the files of the first `size` pairs, or the files of the study for the whole corpus."""
    train, folder = study.experiment.train, study.output / str(size)
    if size == study.pairs:
        return train
    source, target, alignment = (str(folder / f"train.{side}") for side in ("source", "target", "alignment"))
    return ParallelFiles(source=source, target=target, alignment=alignment if train.alignment else "")


def replicates(study: Study) -> list[Replicate]:
    """Return the replicates, one for each size and seed."""
    return [_replicate(study, size, seed) for size in study.sizes for seed in study.seeds]


def _replicate(study: Study, size: int, seed: int) -> Replicate:
    models = {model: _seeded(entry, seed) for model, entry in study.experiment.models.items()}
    output = study.replicate(size, seed)
    experiment = replace(study.experiment, train=corpus_of(study, size), output=output, models=models)
    return Replicate(size, seed, str(output.relative_to(study.output)), experiment)


def _seeded(entry: ModelEntry, seed: int) -> ModelEntry:
    """Return a model with the seed of its replicate.

    A model with a `seed` setting gets this seed plus a multiple of `SEED_STEP` instead.
    """
    settings = entry.request.settings
    own = entry.request.resolve()[1].seed + SEED_STEP * (seed - 1) if "seed" in settings else seed
    return replace(entry, request=replace(entry.request, settings={**settings, "seed": own}))


def cells(study: Study, replicate: Replicate) -> list[Cell]:
    """Return the cells of a replicate, one for each system."""
    folders = {system: replicate.experiment.output / system for system in study.systems}
    return [
        Cell(replicate, system, f"{replicate.name}/{system}", folder / FILE, _values(study, replicate, system, folder))
        for system, folder in folders.items()
    ]


def _values(study: Study, replicate: Replicate, system: str, folder: Path) -> dict[str, Any]:
    """Return the tables of the experiment file of a cell, with paths relative to `folder`."""
    experiment, own = replicate.experiment, study.systems[system]
    models = {name: experiment.models[name] for name in _used(study, own)}
    leaders = _leaders(models)
    files = {
        "code": next((each.folder for each in own.values() if runs_code(each.text)), ""),
        "trained_models": experiment.result("models"),
        "initial_weights": experiment.initial_weights,
        "train": {side: path for side, path in asdict(experiment.train).items() if path},
        "dev": experiment.dev.table,
        SELECTION: experiment.selection.table if experiment.selection else {},
        "test": table_of_tests(experiment.tests),
    }
    return {
        "output": ".",
        **{key: with_paths(each, partial(os.path.relpath, start=folder)) for key, each in files.items() if each},
        "models": {name: _entry(name, models, leaders, folder) for name in models},
        "features": {label: _text(study, replicate, request, folder) for label, request in own.items()},
        "tuning": _seed(study, replicate) | study.tuning,
        **({"report": study.report} if study.report else {}),
    }


def _seed(study: Study, replicate: Replicate) -> dict[str, int]:
    """Return the seed of the tuning, or nothing if the tuner is not random."""
    names = setting_names(TUNERS[study.experiment.tuning.tuning.tuner])
    return {"seed": replicate.seed} if "seed" in names else {}


def _used(study: Study, features: Mapping[str, FeatureRequest]) -> list[str]:
    """Return the models that a system needs, in the order of the study.

    They are the models that its features read, models whose training they start from, and models that no system reads
    but that add candidates.
    """
    models = study.experiment.models
    read = _read(study, features.values())
    anywhere = _read(study, (request for system in study.systems.values() for request in system.values()))
    used = read | {name for name, entry in models.items() if entry.candidates and name not in anywhere}
    for name in reversed(models):  # an entry precedes the entries that start from it
        if name in used and models[name].pretrained_model in models:
            used.add(models[name].pretrained_model)
    return [name for name in models if name in used]


def _read(study: Study, requests: Iterable[FeatureRequest]) -> set[str]:
    parts = {part.partition("/")[0] for request in requests if request.row.takes == "models" for part in request.parts}
    return parts & set(study.experiment.models)


def _entry(name: str, models: Mapping[str, ModelEntry], leaders: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return the table of a model. It has `candidates`, or `translate_with`, the model that has them."""
    entry = models[name]
    request = models[name].request
    start = models[name].pretrained_model
    flags = {"backward": request.backward, "right_to_left": request.right_to_left, "paper_sizes": request.paper_sizes}
    values = {"preset": request.preset, **{flag: on for flag, on in flags.items() if on}, **request.settings}
    if start:
        values["pretrained_model"] = start if start in models else os.path.relpath(start, folder)
    if entry.candidates:
        leads = leaders[name] == name
        values |= {"candidates": entry.candidates} if leads else {"translate_with": leaders[name]}
    return values


def _leaders(models: Mapping[str, ModelEntry]) -> dict[str, str]:
    """Return for each model that adds candidates the model whose entry has the key `candidates` of its group."""
    together = translating(models)
    leaders = {group: group if group in names else names[0] for group, names in together.items()}
    return {name: leaders[group] for group, names in together.items() for name in names}


def _text(study: Study, replicate: Replicate, request: FeatureRequest, folder: Path) -> str:
    """Return a feature as text, with paths relative to `folder`.

    Files of the whole corpus are replaced by the files of the first pairs.
    """
    models = study.experiment.models
    whole = study.experiment.train
    cut = replicate.experiment.train
    first = {Path(path).resolve(): new for path, new in zip(whole.files, cut.files, strict=True)}
    parts = []
    for part in request.parts:
        named = request.row.takes == "models" and part.partition("/")[0] in models
        parts.append(part if named else os.path.relpath(first.get(Path(part).resolve(), part), folder))
    return request.with_parts(parts).text
