"""Several models by one name: the presets and seeds of an entry, and the features that use them all."""

import re
from collections.abc import Mapping
from typing import Any

from features.request import FeatureRequest
from moses_io.errors import InputError

Groups = dict[str, tuple[str, ...]]
"""Names of the models behind a name."""


def members(presets: str, seeds: int) -> list[tuple[str, str, int]]:
    """Return (name, preset, seed) of each model of `--preset A,B --seeds N`; seeds count from 1."""
    if seeds < 1:
        raise InputError(f"seeds: expected a whole number from 1, found {seeds}")
    return [(f"{preset}-{seed}", preset, seed) for preset in presets.split(",") for seed in range(1, seeds + 1)]


def expand_models(entries: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Replace entries with several presets (`"a,b"` or a list) or `seeds = N` by one a model, `NAME-PRESET-SEED`."""
    expanded: dict[str, Any] = {}
    groups: Groups = {}
    for name, entry in entries.items():
        presets = entry.get("preset") if isinstance(entry, dict) else None
        if isinstance(presets, list):
            presets = ",".join(str(preset) for preset in presets)
        if not isinstance(presets, str) or not (
            "," in presets or "seeds" in entry or isinstance(entry["preset"], list)
        ):
            expanded[name] = entry
            continue
        seeds = entry.get("seeds", 1)
        if not isinstance(seeds, int):
            raise InputError(f"models.{name}.seeds: expected a whole number from 1, found {seeds!r}")
        others = {key: value for key, value in entry.items() if key not in ("preset", "seeds")}
        found = {
            f"{name}-{member}": {**others, "preset": preset, "seed": seed}
            for member, preset, seed in members(presets, seeds)
        }
        expanded |= found
        groups[name] = tuple(found)
    return expanded, groups


def expand_feature(request: FeatureRequest, groups: Groups) -> list[FeatureRequest]:
    """Return what a feature of a group stands for: `neural` and the like once a model, with a number at the label.

    An `ensemble` stays one feature, of all models of the groups that it names.
    """
    if request.row.takes != "models":
        return [request]
    named = [(part, re.match("([^/]*)(.*)", part)) for part in request.parts]
    lists = [
        [name + match.group(2) for name in groups[match.group(1)]] if match and match.group(1) in groups else [part]
        for part, match in named
    ]
    if request.kind == "ensemble":
        return [request.with_parts([part for parts in lists for part in parts])]
    size = max(len(parts) for parts in lists)
    if any(len(parts) not in (1, size) for parts in lists):
        raise InputError(
            f"features.{request.label}: groups of {' and '.join(str(len(parts)) for parts in lists)} models"
        )
    if size == 1:
        return [request.with_parts([part for (part,) in lists])]
    return [
        FeatureRequest(f"{request.label}{place + 1}", request.kind, request.argument).with_parts(
            [parts[place % len(parts)] for parts in lists]
        )
        for place in range(size)
    ]
