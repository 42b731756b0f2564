"""Entries of an experiment file for models and groups of models, and features that use a group."""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.models.training.request import TrainingRequest
from features.request import FeatureRequest
from moses_io.files.errors import InputError, at
from moses_io.files.text import ParallelFiles
from rerank.experiment.entries import check_name
from rerank.experiment.toml import RENAMED
from rerank.systems.translations import check_candidates, check_forward

Groups = dict[str, tuple[str, ...]]
"""Names of the models of each group, by the name of the group."""

MAX_MODELS = 1000
"""Maximum number of models of a group."""


def members(presets: str, seeds: int) -> dict[str, dict[str, Any]]:
    """Return preset and seed of each model of `--preset A,B --seeds N`, by model name. Seeds count from 1."""
    names = presets.split(",")
    if len(set(names)) < len(names):
        raise InputError(f"preset: {presets} has a duplicate. Use seeds for several models of one preset")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds * len(names) <= MAX_MODELS:
        expected = f"expected a whole number from 1, and at most {MAX_MODELS} models of one name"
        raise InputError(f"seeds: {expected}, found {seeds!r}")
    pairs = itertools.product(names, range(1, seeds + 1))
    return {f"{preset}-{seed}": {"preset": preset, "seed": seed} for preset, seed in pairs}


def expand_models(entries: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Expand entries with several presets or seeds to one entry per model, with the name `NAME-PRESET-SEED`.

    Such an entry has `preset = "a,b"`, a list of presets, or `seeds = N`.

    Raises:
        InputError: an invalid name, more than `MAX_MODELS` models in a group, or two models with one name.
    """
    expanded: dict[str, Any] = {}
    groups: Groups = {}
    for name, entry in entries.items():
        check_name(name, "models")
        models = _models(name, entry)
        if models is None:
            expanded[name] = entry
            continue
        for model in models:
            if model in expanded or model in entries:
                raise InputError(f"models.{name}: another entry also makes a model {model!r}")
        expanded |= models
        groups[name] = tuple(models)
    return expanded, groups


def _models(name: str, entry: Any) -> dict[str, Any] | None:
    """Return the models of an entry with several presets or seeds, or None for an entry of one model."""
    presets = entry.get("preset") if isinstance(entry, dict) else None
    if isinstance(presets, list):
        presets = ",".join(str(preset) for preset in presets)
    elif not isinstance(presets, str) or not ("," in presets or "seeds" in entry):
        return None
    if "seed" in entry:
        raise InputError(f"models.{name}.seed: several models have the seeds 1, 2, …. Remove it")
    others = {key: value for key, value in entry.items() if key != "seeds"}
    with at(f"models.{name}."):
        several = members(presets, entry.get("seeds", 1))
    return {f"{name}-{member}": others | settings for member, settings in several.items()}


def expand_feature(request: FeatureRequest, groups: Groups) -> list[FeatureRequest]:
    """Expand a feature of a group of models to one feature per model, with a number after the label.

    An `ensemble` remains one feature that uses all models of its groups.
    """
    if request.row.takes != "models":
        return [request]
    lists = []
    for part in request.parts:
        name, slash, member = part.partition("/")
        lists.append([f"{model}{slash}{member}" for model in groups.get(name, (name,))])
    if request.row.joint:
        return [request.with_parts([part for parts in lists for part in parts])]
    size = max(len(parts) for parts in lists)
    if any(len(parts) not in (1, size) for parts in lists):
        sizes = " and ".join(str(len(parts)) for parts in lists)
        raise InputError(f"features.{request.label}: groups of {sizes} models, expected groups of equal size")
    # A single model is combined with each model of a group.
    expanded = [request.with_parts([parts[index % len(parts)] for parts in lists]) for index in range(size)]
    if size == 1:
        return expanded
    return [replace(each, label=f"{request.label}{number}") for number, each in enumerate(expanded, start=1)]


@dataclass(frozen=True)
class ModelEntry:
    """A model to train, or a pair of models that train together.

    Attributes:
        request: preset, direction and settings.
        pretrained_model: name of the entry, or folder, of the model that training starts from, or empty for none.
        candidates: translations that the model adds to each list, 0 for none. For a pair, its forward model adds them.
        group: name of the group of models, or of the model, with which it translates, or empty if it translates alone.
    """

    request: TrainingRequest
    pretrained_model: str = ""
    candidates: int = 0
    group: str = ""

    @property
    def shared_settings(self) -> tuple[Any, ...]:
        """Settings of vocabulary and target order, which must be equal in models that translate together."""
        _, training = self.request.resolve()
        return (
            training.vocabulary_size,
            training.min_frequency,
            training.bpe,
            training.max_length,
            self.request.right_to_left,
        )


def read_model(entry: Any, key: str, train: ParallelFiles) -> ModelEntry:
    """Read the table of a model that is trained on a corpus.

    Args:
        entry: the table.
        key: its key, for messages.
        train: the corpus.

    Raises:
        InputError: no preset, an unknown setting, incompatible settings, or a corpus without data that a setting needs.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("preset"), str):
        raise InputError(f"{key}: expected a table with a preset")
    settings = dict(entry)
    for setting in settings:
        if "-" in setting and setting in RENAMED:
            raise InputError(f"{key}: unknown key {setting}. It is now {RENAMED[setting]}")
    if isinstance(settings.get("candidates"), str):
        raise InputError(f"{key}.candidates: expected a number. The key for the name of a model is translate_with")
    preset, pretrained_model = settings.pop("preset"), settings.pop("pretrained_model", "")
    if not isinstance(pretrained_model, str):
        expected = "expected the name of a model or a folder"
        raise InputError(f"{key}.pretrained_model: {expected}, found {pretrained_model!r}")
    candidates, leader = settings.pop("candidates", 0), settings.pop("translate_with", None)
    switches = {}
    for switch in ("backward", "right_to_left", "paper_sizes"):
        value = switches[switch] = settings.pop(switch, False)
        if not isinstance(value, bool):
            raise InputError(f"{key}.{switch}: expected true or false, found {value!r}")
    request = TrainingRequest(preset, **switches, settings=settings)
    with at(f"{key}: "):
        request.check(pretrained_model)
        request.check_corpus(request.reads(train))
        if leader is not None or "candidates" in entry:
            if request.language_model:
                raise InputError("candidates: a language model does not translate")
            check_forward(request.backward)
        if leader is not None:
            if not isinstance(leader, str):
                raise InputError(f"translate_with: expected the name of a model, found {leader!r}")
            if "candidates" in entry:
                raise InputError(f"candidates: with translate_with, give the number in the entry of {leader!r}")
            return ModelEntry(request, pretrained_model, group=leader)
        if "candidates" in entry:
            check_candidates(candidates, key.removeprefix("models."))
    return ModelEntry(request, pretrained_model, candidates)


def grouped(models: Mapping[str, ModelEntry], groups: Groups) -> dict[str, ModelEntry]:
    """Return the models, each with the name of the group (ensemble) in which it translates.

    This is the group of its entry, or the model or group named by its key `translate_with`.

    Raises:
        InputError: `translate_with` is not the name of a model or group with `candidates`.
    """
    of_group = {name: group for group, names in groups.items() for name in names}
    together = {name: replace(entry, group=entry.group or of_group.get(name, "")) for name, entry in models.items()}
    for name, entry in models.items():
        if entry.group:
            first = models.get(groups.get(entry.group, (entry.group,))[0])
            if first is None or not first.candidates:
                expected = "expected the name of a model with candidates"
                raise InputError(f"models.{name}.translate_with: {expected}, found {entry.group!r}")
            group = of_group.get(entry.group, entry.group)
            together[name] = replace(together[name], group=group, candidates=first.candidates)
    return together


def translating(models: Mapping[str, ModelEntry]) -> dict[str, list[str]]:
    """Return the names of models that add candidates, by group, or by model if it translates alone.

    Raises:
        InputError: models of a group differ in target vocabulary, or in target order (left to right, right to left).
    """
    together: dict[str, list[str]] = {}
    for name, entry in models.items():
        if entry.candidates:
            together.setdefault(entry.group or name, []).append(name)
    for group, names in together.items():
        for name in names:
            if models[name].shared_settings != models[names[0]].shared_settings:
                fault = f"{names[0]} and {name} have different target vocabularies or word orders"
                raise InputError(
                    f"models.{group}: candidates: {fault}, and cannot translate together. Give each its own candidates"
                )
    return together


def find_pretrained_model(name: str, models: Mapping[str, ModelEntry], folder: Path) -> str:
    """Return the model or folder that a model starts from, after all checks that are possible before training."""
    start = models[name].pretrained_model
    with at(f"models.{name}.pretrained_model: "):
        if start not in models:
            start = known_folder(start, models, folder)
        elif start == name:
            raise InputError("a model cannot start from itself, expected another model or a folder")
        elif start in list(models)[list(models).index(name) :]:
            raise InputError(f"{start!r} is trained later. Put its entry before that of {name!r}")
        else:
            models[name].request.check_start(models[start].request)
    return start


def known_folder(name: str, models: Mapping[str, ModelEntry], folder: Path) -> str:
    """Return the path of an existing folder. Raise `InputError`, with the names of the models, if it does not exist."""
    if not os.path.isdir(folder / name):
        known = f". Models: {', '.join(models)}" if models else ""
        raise InputError(f"no model and no folder {name!r}{known}")
    return str(folder / name)
