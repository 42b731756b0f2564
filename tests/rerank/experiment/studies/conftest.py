from collections.abc import Callable
from pathlib import Path

import pytest

STUDY = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }

[study]
sizes = [60, "all"]
seeds = 2

[study.systems]
both = ["NMT", "Len"]
alone = ["NMT"]

[models]
forward = { preset = "rnnsearch", embedding_size = 8, hidden_size = 8, attention_size = 8, epochs = 1, bpe = 0 }

[features]
NMT = "neural:forward"
Len = "length:train.de,train.en"

[tuning]
tuner = "kbmira"
iterations = 2
runs = 1
folds = 2
"""


@pytest.fixture
def study(small: Callable[..., Path]) -> Path:
    """A study with a few sentences of the sample."""
    path = small(pairs=120, sentences=16, candidates=6) / "study.toml"
    path.write_text(STUDY)
    return path
