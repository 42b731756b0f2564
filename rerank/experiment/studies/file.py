"""The study file: an experiment file with a table `[study]`."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.request import FeatureRequest
from moses_io.files.errors import InputError, at, nearest, shown
from moses_io.files.text import ParallelFiles, parallel_lines
from rerank.experiment.entries import check_name
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import KEYS as EXPERIMENT_KEYS
from rerank.experiment.file import experiment_of
from rerank.experiment.toml import INPUT_FILTER, as_table, check_code, check_keys, feature_texts, read_toml
from rerank.report.changes import MOSES

KEYS = ("sizes", "seeds", "systems")
"""Keys of the table `[study]`."""

ALL = "all"
"""As a size: the whole corpus. As a system: all features, if the file names no systems."""

RESERVED_NAMES = ("models", "cache", MOSES)
"""Reserved names that no system may have: folders next to the folders of systems, and Moses in tables."""

MAX_SEEDS = 1000


@dataclass(frozen=True)
class Study:
    """A study file.

    Attributes:
        experiment: the experiment in the file, with all models and features.
        tuning: the table `[tuning]`.
        report: the table `[report]`.
        sizes: corpus sizes in sentence pairs. A size takes the first pairs of the corpus.
        pairs: number of sentence pairs of the whole corpus.
        seeds: one seed for each replicate of a size.
        systems: features by label, by the name of the system, or empty if only models are compared.
    """

    experiment: Experiment
    tuning: dict[str, Any]
    report: dict[str, Any]
    sizes: tuple[int, ...]
    pairs: int
    seeds: tuple[int, ...]
    systems: dict[str, dict[str, FeatureRequest]]

    @property
    def output(self) -> Path:
        """Folder of results."""
        return self.experiment.output

    def replicate(self, size: int, seed: int) -> Path:
        """Return the folder of a size and a seed, which contains the models and the systems that use them."""
        return self.output / str(size) / f"seed-{seed}"

    def folders(self, size: int, seed: int, model: str) -> dict[str, str]:
        """Return the folder of a model of a replicate by name, or both folders of a pair of models."""
        parts = self.experiment.models[model].request.folders
        names = [f"{model}/{part}".removesuffix("/") for part in parts]
        return {name: str(self.replicate(size, seed) / "models" / name) for name in names}

    def perplexities(self, size: int, seed: int, model: str) -> str:
        """Return the path of the perplexities of a model, or a pair of models, of a replicate."""
        return str(self.replicate(size, seed) / f"{model}.perplexity.json")

    def p_values(self, size: int, system: str, test: str) -> str:
        """Return the path of the p-values of a system on a test set, over all seeds."""
        return str(self.output / str(size) / f"{system}+{test}.p.json")

    @property
    def tests(self) -> list[str]:
        """Names of the test sets with references."""
        return [name for name, files in self.experiment.tests.items() if files.reference]

    @property
    def texts(self) -> dict[str, ParallelFiles]:
        """Source and first reference of all sets with references, by set name."""
        return {name: files.texts for name, files in self.experiment.sets.items() if files.reference}


def read_study(path: str, allow_code: bool = False) -> Study:
    """Read and check a study file.

    Args:
        path: the file.
        allow_code: whether features may run code of users even if the file is not the user's own (`is_own`).

    Raises:
        InputError: as `read_experiment`, or sizes, seeds or systems are invalid.
    """
    values = read_toml(path)
    with at(f"{path}: "):
        check_code(values, path, allow_code)
        return _study(values, Path(path).resolve().parent)


def _study(values: dict[str, Any], folder: Path) -> Study:
    check_keys(values, (*EXPERIMENT_KEYS, "study"))
    if "study" not in values:
        raise InputError("expected a table [study], with sizes and seeds. `run` does a single experiment")
    table = as_table(values["study"], "study")
    check_keys(table, KEYS, "study.")
    tables = {key: value for key, value in values.items() if key != "study"}
    if "trained_models" in tables:
        raise InputError("trained_models: a study trains its own models")
    for key in ("minutes", "apply_seconds"):
        if key in tables:
            raise InputError(f"{key}: a study compares models that are named. Remove it")
    if "monolingual" in as_table(tables.get("train", {}), "train"):
        raise InputError("train.monolingual: a study trains on parallel text only. Remove it")
    if INPUT_FILTER in tables:
        raise InputError(f"{INPUT_FILTER}: a study reads all files as they are. Remove it")
    if "pretrained" in tables:
        raise InputError("pretrained: a study compares models that it trains. Remove it")
    if "shortlist" in tables:
        raise InputError("shortlist: a study computes all features for all candidates. Remove it")
    if "models" not in tables and "features" not in tables:
        raise InputError("expected [models], [features] or both: a study does not choose models")
    texts = feature_texts(tables)
    experiment = experiment_of(tables if texts else _without_lists(tables), folder)
    named = _systems(table.get("systems"), texts)
    systems = {
        name: experiment_of(tables | {"features": {label: texts[label] for label in labels}}, folder).features
        for name, labels in named.items()
    }
    train = experiment.train
    pairs = sum(1 for _ in parallel_lines(train.source, train.target))
    return Study(
        experiment=replace(experiment, output=Path(os.path.realpath(experiment.output))),
        tuning=as_table(tables.get("tuning", {}), "tuning"),
        report=as_table(tables.get("report", {}), "report"),
        sizes=_sizes(table.get("sizes", [ALL]), pairs, train.source),
        pairs=pairs,
        seeds=_seeds(table.get("seeds", 1)),
        systems=systems,
    )


def _without_lists(tables: dict[str, Any]) -> dict[str, Any]:
    """Add empty paths for Moses' weights and n-best lists, which a study of models alone does not need."""
    tests = tables.get("test", [])
    listed = [_without_list(each) for each in tests] if isinstance(tests, list) else _without_list(tests)
    return {"initial_weights": "", **tables, "dev": _without_list(tables.get("dev", {})), "test": listed}


def _without_list(table: Any) -> Any:
    return {"nbest": "", **table} if isinstance(table, dict) else table


def _sizes(value: Any, pairs: int, path: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise InputError(f'study.sizes: expected a list of numbers of pairs, or "{ALL}", found {shown(value)}')
    sizes = []
    for each in value:
        size = pairs if each == ALL else each
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f'study.sizes: expected whole numbers from 1, or "{ALL}", found {shown(each)}')
        if size > pairs:
            raise InputError(f"study.sizes: {size:,} pairs, but {path} has {pairs:,}")
        if size in sizes:
            raise InputError(f"study.sizes: {size:,} pairs twice")
        sizes.append(size)
    return tuple(sizes)


def _seeds(value: Any) -> tuple[int, ...]:
    listed = isinstance(value, list)
    seeds: Sequence[Any] = value if listed else [value]
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 1 <= seed <= MAX_SEEDS:
            expected = f"a number of seeds, or a list of seeds, from 1 to {MAX_SEEDS}"
            raise InputError(f"study.seeds: expected {expected}, found {shown(value)}")
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"study.seeds: expected seeds that differ, found {shown(value)}")
    return tuple(seeds) if listed else tuple(range(1, value + 1))


def _systems(value: Any, texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the feature labels of each system. Without `systems` in the file, one system has all features."""
    if value is None:
        return {ALL: list(texts)} if texts else {}
    systems = as_table(value, "study.systems")
    if not systems or not texts:
        needs = "at least one system" if texts else "[features], because systems are lists of its labels"
        raise InputError(f"study.systems: expected {needs}")
    for name, labels in systems.items():
        check_name(name, "study.systems")
        if name in RESERVED_NAMES:
            raise InputError(f"study.systems.{name}: no system can have this name. Choose another one")
        if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
            raise InputError(f"study.systems.{name}: expected a list of labels of [features], found {shown(labels)}")
        for label in labels:
            if label not in texts:
                raise InputError(f"study.systems.{name}: no feature {shown(label)}{nearest(label, list(texts))}")
    return systems
