"""What a model is, as `config.json` in its folder says."""

import dataclasses
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from features.models.settings import Architecture, Training, override
from moses_io.errors import InputError, nearest
from moses_io.json_files import read_json

FORMAT = 2
CONFIG = "config.json"
WEIGHTS, BASE = "model.safetensors", "base.safetensors"
CHECKPOINT = "training.safetensors"
METRICS = "metrics.jsonl"
SIDES = ("source", "target")


@dataclass(frozen=True)
class ModelConfig:
    """What `config.json` holds."""

    preset: str  # the name that the model was trained by
    direction: str  # `forward` for p(target|source), `backward` for p(source|target)
    architecture: Architecture
    training: Training
    right_to_left: bool = False  # the network reads its target from the last word to the first
    partner: str = ""  # folder, seen from this one, of the model that was trained together with it; empty if alone
    corpus: str = ""  # digest of the text that it was trained on, and of dev
    format: int = FORMAT  # version of the folder's format

    @property
    def parts(self) -> list[str]:
        """Names of the files, beside those of the weights, that a model of this kind has."""
        kinds = ("vocabulary", "bpe") if self.training.bpe else ("vocabulary",)
        return [CONFIG, *(f"{side}.{kind}" for side in SIDES for kind in kinds)]


_TEXTS = {
    "preset": (r"[0-9A-Za-z][-.0-9A-Za-z]*", "a name"),
    "direction": (r"forward|backward", "forward or backward"),
    "partner": (r"|\.\./forward|\.\./backward", "../forward, ../backward or nothing"),
    "corpus": (r"|[0-9a-f]{12}", "12 hexadecimal digits or nothing"),
}
"""Pattern and description of the texts in `config.json`."""


def read_config(folder: Path) -> ModelConfig:
    """Read what a model folder is; settings that are younger than the folder have what its model was made with.

    Raises:
        InputError: the folder is no model, or a value is missing, unknown, or not one that we write.
    """
    path = folder / CONFIG
    if not os.path.lexists(path):
        raise InputError(f"{folder}: not a model folder, it has no {CONFIG}")
    values = read_json(path)
    version = values.get("format") if isinstance(values, dict) else None
    if version != FORMAT:
        raise InputError(f"{path}: format {version!r}, this version reads format {FORMAT}")
    try:
        _check(values)
        architecture, training = _settings(values.pop("architecture"), values.pop("training"))
    except (InputError, RecursionError) as error:
        raise InputError(f"{path}: not the settings of a model ({error})") from None
    return ModelConfig(architecture=architecture, training=training, **values)


def _check(values: dict[str, Any]) -> None:
    """Refuse keys that are unknown or missing, and values, but those of settings, that are not what they may be."""
    known = [field.name for field in dataclasses.fields(ModelConfig)]
    for name in values:
        if name not in known:
            raise InputError(f"unknown key {name!r}{nearest(name, known)}")
    for name, (pattern, expected) in _TEXTS.items():
        value = values.get(name, "")
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise InputError(f"{name!r}: found {value!r}, expected {expected}")
    switch = values.get("right_to_left", False)
    if not isinstance(switch, bool):
        raise InputError(f"'right_to_left': found {switch!r}, expected true or false")
    for name in ("architecture", "training"):
        if not isinstance(values.get(name), dict):
            raise InputError(f"{name!r}: found {values.get(name)!r}, expected settings by their names")


def _settings(parts: dict[str, Any], training: dict[str, Any]) -> tuple[Architecture, Training]:
    """Read settings, each of which stands in its own part of the file as it is written there."""
    architecture, settled = override(Architecture(), Training(), parts | training)
    written = json.loads(json.dumps([asdict(architecture), asdict(settled)]))
    for section, settings in zip((parts, training), written, strict=True):
        for name, value in section.items():
            if name not in settings:
                raise InputError(f"setting {name!r} stands in the wrong place")
            if value != settings[name]:
                raise InputError(f"setting {name!r}: found {value!r}, expected {settings[name]!r}")
    former = {name: value for name, value in _former_settings(architecture).items() if name not in parts}
    return dataclasses.replace(architecture, **former), settled


def _former_settings(architecture: Architecture) -> dict[str, Any]:
    """Return settings of version 0.2 as they were, unwritten, in a model of an earlier one with these parts."""
    fertility = architecture.attention if "fertility" in architecture.objectives else 0
    return {"softmax_bias": architecture.bias, "fertility": fertility}
