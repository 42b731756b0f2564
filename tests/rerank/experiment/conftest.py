from collections.abc import Callable
from pathlib import Path

import pytest

EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
TEST
[features]
FEATURES

[tuning]
tuner = "kbmira"
iterations = 3
runs = 1
folds = 0
"""


@pytest.fixture
def folder(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with texts and lists of ten sentences."""
    folder = small(pairs=20, sentences=10, candidates=6)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def experiment(folder: Path) -> Callable[..., Path]:
    """Function that writes an experiment file with a short tuning and returns its path."""

    def write(features: str, test: str = "") -> Path:
        path = folder / "e.toml"
        path.write_text(EXPERIMENT.replace("TEST", test).replace("FEATURES", features))
        return path

    return write
