"""What the folder of a model says of it: `config.json`, and which sentences of dev it has learned from, `dev.folds`.

A model whose training ended on dev (setting `adapt`) has its weights several times in its folder: `model.safetensors`
learned from all of dev, `fold-N.safetensors` from all but fold N of it, and `dev.folds` says where a sentence belongs.
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

from features.models.settings import Architecture, Training, override
from moses_io.files.errors import InputError, nearest
from moses_io.files.json_files import read_json
from moses_io.files.streams import check_plain, open_output
from moses_io.files.text import encode, read_lines

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


DEV_FOLDS = 5
RECORD = "dev.folds"
_LINE = re.compile(r"([1-5]) ([0-9a-f]{16})")


@dataclass(frozen=True)
class DevFolds:
    """The source sentences of dev, in folds that are numbered from 1; each sentence is in one, however often it stands.

    Attributes:
        folds: of each sentence by its digest.
    """

    folds: dict[str, int]

    @classmethod
    def divide(cls, sources: Iterable[Sequence[str]]) -> "DevFolds":
        """Divide sentences, given by their tokens, into folds of one size: by their digests, as if at random."""
        digests = sorted({_digest(source) for source in sources})
        return cls({digest: place % DEV_FOLDS + 1 for place, digest in enumerate(digests)})

    @classmethod
    def read(cls, folder: Path) -> "DevFolds":
        """Read the folds of a model; one that did not learn from dev has none.

        Raises:
            InputError: the file is not as `write` writes it.
        """
        path, folds = folder / RECORD, dict[str, int]()
        if os.path.lexists(path):
            check_plain(path)
            for number, line in enumerate(read_lines(str(path)), start=1):
                match = _LINE.fullmatch(line)
                if not match or match[2] in folds:
                    fault = (
                        "a sentence that stands there twice" if match else "expected a fold and 16 hexadecimal digits"
                    )
                    raise InputError(f"{path}:{number}: {fault}")
                folds[match[2]] = int(match[1])
        return cls(folds)

    def write(self, folder: Path) -> None:
        """Write a line for each sentence: its fold and its digest."""
        with open_output(str(folder / RECORD)) as stream:
            stream.writelines(encode(f"{fold} {digest}\n") for digest, fold in self.folds.items())

    def fold_of(self, source: Sequence[str]) -> int:
        """Return the fold of a source sentence; 0 for one that is not in dev."""
        return self.folds.get(_digest(source), 0) if self.folds else 0

    @property
    def numbers(self) -> list[int]:
        """The folds that there are: of fewer sentences than `DEV_FOLDS`, as many."""
        return sorted(set(self.folds.values()))


def weights_file(fold: int) -> str:
    """Return the name of the weights that have not seen a fold; of 0, of those for all sentences that are in none."""
    return f"fold-{fold}.safetensors" if fold else WEIGHTS


FOLD_WEIGHTS = tuple(weights_file(fold) for fold in range(1, DEV_FOLDS + 1))
"""What stands in the folder of a model that has learned from dev, for the sentences of dev alone."""


def _digest(source: Sequence[str]) -> str:
    return hashlib.blake2b(encode(" ".join(source)), digest_size=8).hexdigest()
