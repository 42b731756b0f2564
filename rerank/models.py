"""Training a model on files of parallel text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from features.models.settings import Training, find_preset, override
from features.progress import note
from moses_io.text import read_parallel, tokens


@dataclass(frozen=True)
class TrainingRequest:
    """What to train, and on what.

    Attributes:
        preset: name of the architecture.
        corpus: files of the two sides, source first.
        dev: the same, for early stopping.
        backward: train p(source|target).
        settings: what differs from the preset and from the defaults of training.
    """

    preset: str
    corpus: tuple[str, str]
    dev: tuple[str, str]
    backward: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


def train_model(request: TrainingRequest, output: str, device: str) -> None:
    """Train a model into the folder `output`; settings and files are checked before torch is loaded."""
    architecture, training = override(find_preset(request.preset).architecture, Training(), dict(request.settings))
    corpus, dev = _read(request.corpus, request.backward), _read(request.dev, request.backward)
    from features.models.device import find_device
    from features.models.folder import ModelConfig
    from features.models.training import train

    direction = "backward" if request.backward else "forward"
    config = ModelConfig(request.preset, direction, architecture, training)
    best = train(config, corpus, dev, Path(output), find_device(device))
    note(f"{output}: perplexity on dev {best:.3f} a word with </s>")


def _read(paths: tuple[str, str], backward: bool) -> list[tuple[list[str], list[str]]]:
    pairs = [(tokens(source), tokens(target)) for source, target in read_parallel(*paths)]
    return [(target, source) for source, target in pairs] if backward else pairs
