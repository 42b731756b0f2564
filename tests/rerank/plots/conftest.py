from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import pytest


@pytest.fixture
def drawn() -> Callable[[Path], list[str]]:
    """Return a function that returns the text elements of an SVG picture."""

    def read(path: Path) -> list[str]:
        nodes = minidom.parse(str(path)).getElementsByTagName("text")
        return ["".join(child.data for child in node.childNodes) for node in nodes]

    return read


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    """An untrained model with an attention weight for each of 6 dimensions."""
    import torch

    from features.models.config import ModelConfig
    from features.models.folder import create_folder, save_weights
    from features.models.network.model import EncoderDecoder
    from features.models.settings import Architecture, Training, override
    from features.models.vocabulary import build_vocabulary

    sizes = {"embedding_size": 4, "hidden_size": 3, "attention_size": 5, "granularity": "fine"}
    architecture, training = override(Architecture(), Training(bpe=0, min_frequency=1), sizes)
    vocabulary = build_vocabulary([["die", "Zeitung", ".", "the", "newspaper"]], training)
    create_folder(tmp_path / "fine", ModelConfig("x", "forward", architecture, training), vocabulary, vocabulary)
    torch.manual_seed(1)
    save_weights(tmp_path / "fine", EncoderDecoder(architecture, len(vocabulary), len(vocabulary)))
    return tmp_path / "fine"
