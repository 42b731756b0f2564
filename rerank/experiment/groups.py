"""Several models by one name: the presets and seeds of an entry, and the features that use them all."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from features.request import FeatureRequest
from moses_io.errors import InputError, at

Groups = dict[str, tuple[str, ...]]
"""Names of the models behind a name."""

MOST = 1000
"""Models of a group."""

LONGEST = 100
"""Bytes of a name; folders and files are named after it, and file systems take 255."""

_NAME = re.compile(r"\w[\w.-]*")


class Member(NamedTuple):
    """A model of a group."""

    name: str
    preset: str
    seed: int


def members(presets: str, seeds: int) -> list[Member]:
    """Return the models of `--preset A,B --seeds N`; seeds count from 1."""
    names = presets.split(",")
    if len(set(names)) < len(names):
        raise InputError(f"preset: one of {presets} stands there twice; seeds = N makes several models of one preset")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds * len(names) <= MOST:
        expected = f"expected a whole number from 1, and at most {MOST} models of one name"
        raise InputError(f"seeds: {expected}, found {seeds!r}")
    return [Member(f"{preset}-{seed}", preset, seed) for preset in names for seed in range(1, seeds + 1)]


def expand_models(entries: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Replace entries with several presets (`"a,b"` or a list) or `seeds = N` by one a model, `NAME-PRESET-SEED`.

    Raises:
        InputError: a name that is not one of a folder, more models than `MOST`, or two of one name.
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
                raise InputError(f"models.{name}: another entry makes a model {model!r}, too")
        expanded |= models
        groups[name] = tuple(models)
    return expanded, groups


def _models(name: str, entry: Any) -> dict[str, Any] | None:
    """Return the models of an entry with several presets or seeds, None for another one."""
    presets = entry.get("preset") if isinstance(entry, dict) else None
    if isinstance(presets, list):
        presets = ",".join(str(preset) for preset in presets)
    elif not isinstance(presets, str) or not ("," in presets or "seeds" in entry):
        return None
    if "seed" in entry:
        raise InputError(f"models.{name}.seed: several models have the seeds 1, 2, …; leave it away")
    others = {key: value for key, value in entry.items() if key != "seeds"}
    with at(f"models.{name}."):
        several = members(presets, entry.get("seeds", 1))
    return {f"{name}-{member.name}": {**others, "preset": member.preset, "seed": member.seed} for member in several}


def check_name(name: str, key: str) -> None:
    """Refuse a name below a key of the experiment file that is not that of a folder or a file in any place."""
    if not _NAME.fullmatch(name) or len(name.encode()) > LONGEST:
        expected = f"letters, digits, '_', and behind the first '-' and '.', {LONGEST} bytes at most"
        raise InputError(f"{key}: expected names of {expected}, found {name[:40]!r}")


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
