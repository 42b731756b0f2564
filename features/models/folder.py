"""A model as a folder: `config.json`, `source.vocabulary`, `target.vocabulary`, `model.safetensors`.

Models on pieces of words also have `source.bpe` and `target.bpe`, of sentencepiece. Nothing is pickled, and scoring
needs nothing else. While a model trains, the weights in its folder are those of the best epoch so far, and
`training.safetensors` holds what `--resume` needs.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from features.models.network.model import EncoderDecoder
from features.models.settings import Architecture, Training, override
from features.models.vocabulary import Vocabulary, load_vocabulary
from features.progress import note
from moses_io.errors import InputError
from moses_io.streams import digest, open_output, remove_halves

FORMAT = 2
CHECKPOINT = "training.safetensors"
WEIGHTS = "model.safetensors"
METRICS = "metrics.jsonl"
_CONFIG = "config.json"


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


@dataclass(frozen=True)
class Model:
    """A model ready to score: the network, its two vocabularies, and what it is.

    `source` and `target` are those of the network: for a backward model the network's source is the translation.
    """

    config: ModelConfig
    network: EncoderDecoder
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    digest: str

    @property
    def signature(self) -> str:
        """What made the scores of this model."""
        order = "|order:right-to-left" if self.config.right_to_left else ""
        return f"preset:{self.config.preset}|direction:{self.config.direction}{order}|sha256:{self.digest}"


def create_folder(folder: Path, config: ModelConfig, source: Vocabulary, target: Vocabulary) -> None:
    """Make the folder of a model that is about to train; see `check_free`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    source.save(folder, "source")
    target.save(folder, "target")
    with open_output(str(folder / _CONFIG)) as stream:
        stream.write(json.dumps(asdict(config), indent=2).encode() + b"\n")


def check_free(folder: Path, resume: bool) -> None:
    """Refuse a folder that holds something, with an `InputError`; `resume` overlooks what a killed training began."""
    begun = {_CONFIG, *(f"{side}.{kind}" for side in ("source", "target") for kind in ("vocabulary", "bpe"))}
    try:
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: not a folder")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    hidden = [path for path in files if any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if [path for path in files if not (resume and (path.name in begun or path in hidden))]:
        raise InputError(f"{folder}: the folder is not empty; name another one, remove it, or go on with --resume")


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove what a killed training left half-written of our own files; nothing else is ours to remove."""
    sides = [f"{side}.{kind}" for side in ("source", "target") for kind in ("vocabulary", "bpe")]
    for folder in folders:
        for name in (_CONFIG, WEIGHTS, CHECKPOINT, METRICS, *sides):
            remove_halves(folder / name)


def save_weights(folder: Path, network: EncoderDecoder) -> None:
    """Put the network's weights into the folder, in place of those before."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    with open_output(str(folder / WEIGHTS)) as stream:
        stream.write(safetensors.torch.save(tensors))


def load_model(folder: Path, device: torch.device) -> Model:
    """Read a model folder.

    Raises:
        InputError: the folder is not one, is damaged, or is of a format that this version does not know.
    """
    config = read_config(folder)
    if not (folder / WEIGHTS).is_file():
        raise InputError(f"{folder}: no {WEIGHTS}; the training of this model did not get to its first epoch's end")
    source, target = (load_vocabulary(folder, side, config.training.bpe > 0) for side in ("source", "target"))
    network = EncoderDecoder(config.architecture, len(source), len(target))
    try:
        network.load_state_dict(safetensors.torch.load_file(folder / WEIGHTS))
    except (safetensors.SafetensorError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise InputError(f"{folder / WEIGHTS}: damaged, or of another model ({reason})") from None
    network.to(device).eval()
    if any((place / CHECKPOINT).exists() for place in (folder, folder.parent)):
        note(f"{folder}: the training of this model has not ended; these are its best weights so far")
    weights = digest(folder / WEIGHTS)
    return Model(config=config, network=network, source=source, target=target, device=device, digest=weights)


def read_config(folder: Path) -> ModelConfig:
    """Read what a model folder is; settings that are younger than the folder have what its model was made with."""
    path = folder / _CONFIG
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: not a model folder, it has no {_CONFIG}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    version = values.get("format") if isinstance(values, dict) else None
    if version != FORMAT:
        raise InputError(f"{path}: format {version}, this version reads format {FORMAT}")
    try:
        parts = {**values.pop("architecture")}
        settings = _former_settings(parts) | parts | values.pop("training")
        architecture, training = override(Architecture(), Training(), settings)
        return ModelConfig(architecture=architecture, training=training, **values)
    except (KeyError, TypeError, InputError) as error:
        raise InputError(f"{path}: not the settings of a model ({error})") from None


def _former_settings(parts: dict[str, Any]) -> dict[str, Any]:
    """Return settings of version 0.2 as they were, unwritten, in a model of an earlier one with these parts."""
    fertility = parts.get("attention", Architecture.attention) if "fertility" in parts.get("objectives", ()) else 0
    return {"softmax_bias": parts.get("bias", True), "fertility": fertility}
