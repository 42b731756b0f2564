"""Several models by one name: the presets and seeds of an entry, and the features that use them all."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from features.request import FeatureRequest
from moses_io.errors import InputError

Groups = dict[str, tuple[str, ...]]
"""Names of the models behind a name."""


class Member(NamedTuple):
    """A model of a group."""

    name: str
    preset: str
    seed: int


def members(presets: str, seeds: int) -> list[Member]:
    """Return the models of `--preset A,B --seeds N`; seeds count from 1."""
    if seeds < 1:
        raise InputError(f"seeds: expected a whole number from 1, found {seeds}")
    return [Member(f"{preset}-{seed}", preset, seed) for preset in presets.split(",") for seed in range(1, seeds + 1)]


def expand_models(entries: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Replace entries with several presets (`"a,b"` or a list) or `seeds = N` by one a model, `NAME-PRESET-SEED`."""
    expanded: dict[str, Any] = {}
    groups: Groups = {}
    for name, entry in entries.items():
        presets = entry.get("preset") if isinstance(entry, dict) else None
        if isinstance(presets, list):
            presets = ",".join(str(preset) for preset in presets)
        elif not isinstance(presets, str) or not ("," in presets or "seeds" in entry):
            expanded[name] = entry
            continue
        seeds = entry.get("seeds", 1)
        if not isinstance(seeds, int):
            raise InputError(f"models.{name}.seeds: expected a whole number from 1, found {seeds!r}")
        others = {key: value for key, value in entry.items() if key != "seeds"}
        models = {
            f"{name}-{member.name}": {**others, "preset": member.preset, "seed": member.seed}
            for member in members(presets, seeds)
        }
        expanded |= models
        groups[name] = tuple(models)
    return expanded, groups


def expand_feature(request: FeatureRequest, groups: Groups) -> list[FeatureRequest]:
    """Return what a feature of a group stands for: `neural` and the like once a model, with a number at the label.

    An `ensemble` stays one feature, of all models of the groups that it names.
    """
    if request.row.takes != "models":
        return [request]
    lists = []
    for part in request.parts:
        name, slash, member = part.partition("/")
        lists.append([f"{model}{slash}{member}" for model in groups.get(name, (name,))])
    if request.kind == "ensemble":
        return [request.with_parts([part for parts in lists for part in parts])]
    size = max(len(parts) for parts in lists)
    if any(len(parts) not in (1, size) for parts in lists):
        sizes = " and ".join(str(len(parts)) for parts in lists)
        raise InputError(f"features.{request.label}: groups of {sizes} models")
    expanded = [request.with_parts([parts[place % len(parts)] for parts in lists]) for place in range(size)]
    if size == 1:
        return expanded
    return [replace(each, label=f"{request.label}{number}") for number, each in enumerate(expanded, start=1)]
