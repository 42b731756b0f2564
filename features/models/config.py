"""Metadata in a model folder: `config.json`, and `dev.folds` for models fine-tuned on dev.

A model with fine-tuning on dev (setting `fine_tuning_epochs`) has several sets of weights: `model.safetensors` was
tuned on all of dev, `fold-N.safetensors` on all of dev except fold N. `dev.folds` assigns each sentence of dev to a
fold.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from features.models.settings import NO_ATTENTION, RENAMED, Architecture, Training, override
from moses_io.files.errors import InputError, nearest
from moses_io.files.json_files import read_json
from moses_io.files.streams import check_plain, open_output
from moses_io.files.text import encode, read_lines

FORMAT = 3
"""Version of the folder format. Format 2 had other names of settings, see `features.models.settings.RENAMED`."""

CONFIG = "config.json"
WEIGHTS, BASE = "model.safetensors", "base.safetensors"
CHECKPOINT = "training.safetensors"
METRICS = "metrics.jsonl"
SIDES = ("source", "target")


@dataclass(frozen=True)
class ModelConfig:
    """Content of `config.json`."""

    preset: str  # name of the preset
    direction: str  # `forward` for p(target|source), `backward` for p(source|target)
    architecture: Architecture
    training: Training
    right_to_left: bool = False  # the network predicts the target from the last word to the first
    partner: str = ""  # relative path of the model that was trained together with this one, or empty
    corpus: str = ""  # digest of the training text and of dev
    format: int = FORMAT  # version of the folder format

    @property
    def parts(self) -> list[str]:
        """Names of the files of such a model, except for weights."""
        cut = SIDES[self.architecture.language_model :] if self.training.bpe else ()  # sides with subwords
        return [CONFIG, *(f"{side}.vocabulary" for side in SIDES), *(f"{side}.bpe" for side in cut)]


_TEXTS = {
    "preset": (r"[0-9A-Za-z][-.0-9A-Za-z]*", "a name"),
    "direction": (r"forward|backward", "forward or backward"),
    "partner": (r"|\.\./forward|\.\./backward", "../forward, ../backward or nothing"),
    "corpus": (r"|[0-9a-f]{12}", "12 hexadecimal digits or nothing"),
}
"""Pattern and description of the strings in `config.json`."""


def read_config(folder: Path) -> ModelConfig:
    """Read `config.json` of a model folder.

    Settings that are missing, because they are newer than the model, get the values with which it was trained.

    Raises:
        InputError: the folder is not a model, or a key is unknown, missing, or has an invalid value.
    """
    path = folder / CONFIG
    if not os.path.lexists(path):
        raise InputError(f"{folder}: not a model folder, it has no {CONFIG}")
    values = read_json(path)
    version = values.get("format") if isinstance(values, dict) else None
    if version not in (FORMAT - 1, FORMAT):
        raise InputError(f"{path}: format {version!r}, this version reads formats {FORMAT - 1} and {FORMAT}")
    try:
        _check(values)
        if values.pop("format") < FORMAT:
            values |= {name: _with_present_names(values[name]) for name in ("architecture", "training")}
        architecture, training = _settings(values.pop("architecture"), values.pop("training"))
    except (InputError, RecursionError) as error:
        raise InputError(f"{path}: not the settings of a model ({error})") from None
    return ModelConfig(architecture=architecture, training=training, **values)


def _check(values: dict[str, Any]) -> None:
    """Raise `InputError` for unknown, missing or invalid keys, except those of the settings."""
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
            raise InputError(f"{name!r}: found {values.get(name)!r}, expected an object of settings")


def _with_present_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of format 2 with the names and values of the present format."""
    renamed = {RENAMED.get(name, name): value for name, value in settings.items()}
    return renamed | ({"decoder": NO_ATTENTION} if renamed.get("decoder") == "none" else {})


def _settings(parts: dict[str, Any], training: dict[str, Any]) -> tuple[Architecture, Training]:
    """Parse settings. Each must be in its own section of the file, written as we write it."""
    architecture, training_settings = override(Architecture(), Training(), parts | training)
    written = json.loads(json.dumps([asdict(architecture), asdict(training_settings)]))
    for section, settings in zip((parts, training), written, strict=True):
        for name, value in section.items():
            if name not in settings:
                raise InputError(f"setting {name!r} is in the wrong section")
            if value != settings[name]:
                raise InputError(f"setting {name!r}: found {value!r}, expected {settings[name]!r}")
    former = {name: value for name, value in _former_settings(architecture).items() if name not in parts}
    return dataclasses.replace(architecture, **former), training_settings


def _former_settings(architecture: Architecture) -> dict[str, Any]:
    """Return settings that format 2 lacks, with the values that these models used without storing them."""
    fertility = architecture.attention_size if "fertility" in architecture.objectives else 0
    return {"softmax_bias": architecture.bias, "fertility_size": fertility}


DEV_FOLDS = 5
RECORD = "dev.folds"
_LINE = re.compile(r"([1-5]) ([0-9a-f]{16})")


@dataclass(frozen=True)
class DevFolds:
    """Assignment of the source sentences of dev to folds, which are numbered from 1.

    A repeated sentence is in one fold only.

    Attributes:
        folds: fold of each sentence, by digest of the sentence.
    """

    folds: dict[str, int]

    @classmethod
    def divide(cls, sources: Iterable[Sequence[str]]) -> "DevFolds":
        """Divide sentences, given as tokens, into `DEV_FOLDS` folds whose sizes differ by at most one sentence.

        Sentences are ordered by digest, a pseudo-random order.
        """
        digests = sorted({_digest(source) for source in sources})
        return cls({digest: index % DEV_FOLDS + 1 for index, digest in enumerate(digests)})

    @classmethod
    def read(cls, folder: Path) -> "DevFolds":
        """Read the folds of a model. A model without fine-tuning on dev has none.

        Raises:
            InputError: the file does not have the format of `write`.
        """
        path, folds = folder / RECORD, dict[str, int]()
        if os.path.lexists(path):
            check_plain(path)
            for number, line in enumerate(read_lines(str(path)), start=1):
                match = _LINE.fullmatch(line)
                if not match or match[2] in folds:
                    fault = "the sentence occurs twice" if match else "expected a fold and 16 hexadecimal digits"
                    raise InputError(f"{path}:{number}: {fault}")
                folds[match[2]] = int(match[1])
        return cls(folds)

    def write(self, folder: Path) -> None:
        """Write one line for each sentence: its fold and its digest."""
        with open_output(str(folder / RECORD)) as stream:
            stream.writelines(encode(f"{fold} {digest}\n") for digest, fold in self.folds.items())

    def fold_of(self, source: Sequence[str]) -> int:
        """Return the fold of a source sentence, or 0 if it is not in dev."""
        return self.folds.get(_digest(source), 0) if self.folds else 0

    @property
    def numbers(self) -> list[int]:
        """The numbers of the folds. With fewer sentences than `DEV_FOLDS` there are fewer folds."""
        return sorted(set(self.folds.values()))


def weights_file(fold: int) -> str:
    """Return the file name of the weights tuned without this fold. Fold 0 is for sentences outside dev."""
    return f"fold-{fold}.safetensors" if fold else WEIGHTS


FOLD_WEIGHTS = tuple(weights_file(fold) for fold in range(1, DEV_FOLDS + 1))
"""Additional weight files of a model with fine-tuning on dev, used for sentences of dev only."""


def _digest(source: Sequence[str]) -> str:
    return hashlib.blake2b(encode(" ".join(source)), digest_size=8).hexdigest()
