import gzip
import shutil
from pathlib import Path

import pytest

SENTENCES, CANDIDATES, PAIRS = 16, 6, 120

STUDY = """\
output = "work"
start = "moses.ini"
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
forward = { preset = "rnnsearch", embedding = 8, hidden = 8, attention = 8, epochs = 1, bpe = 0 }

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
def study(tmp_path: Path, sample: Path) -> Path:
    """A study of a few sentences of the sample."""
    for name, count in {"train": PAIRS, "dev": SENTENCES, "test": SENTENCES}.items():
        for side in ("de", "en"):
            lines = (sample / f"{name}.{side}").read_bytes().split(b"\n")
            (tmp_path / f"{name}.{side}").write_bytes(b"\n".join(lines[:count]) + b"\n")
    for name in ("dev", "test"):
        with gzip.open(sample / f"{name}.nbest.gz") as stream:
            first = [line for line in stream if int(line.split(b" ", 1)[0]) < SENTENCES]
        groups = [[line for line in first if line.startswith(b"%d " % sentence)] for sentence in range(SENTENCES)]
        (tmp_path / f"{name}.nbest").write_bytes(b"".join(line for group in groups for line in group[:CANDIDATES]))
    shutil.copy(sample / "moses.ini", tmp_path / "moses.ini")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"
