from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rerank.experiment import toml
from rerank.experiment.toml import moved, write_experiment

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
TABLES = st.dictionaries(TEXTS, VALUES, max_size=3)

TEXT = """\
# An experiment.
output = "work"

# Weights are tuned on it.
dev = { source = "dev.de", reference = ["dev.en", "dev.en2"] }

# Many of them.
[[test]]
name = "news"
source = "news.de"

[[test]]
name = "talks"
source = "talks \\"b\\".dé"

# 6,000 pairs
[models]
back = { preset = "rnnsearch", right_to_left = true, dropout = 0.2 }

[features]
# One of us.
NMT = "neural:back"
"L M" = "kenlm:x"

[tuning]
"""


@given(TABLES, TABLES, st.lists(TABLES, min_size=1, max_size=3), TEXTS)
def test_written_values_are_read_back(
    files: dict[str, Any], models: dict[str, Any], tests: list[Any], text: str
) -> None:
    values = {"start": text, "dev": files, "models": models, "test": tests}
    written = write_experiment(values, {"": ["a comment"], "models": ["[features]", "x = 1"], "test": ["more"]})
    assert toml.tomllib.loads(written) == values


def test_comments_are_above_their_keys_and_entries() -> None:
    values = {
        "output": "work",
        "test": [{"name": "news", "source": "news.de"}, {"name": "talks", "source": 'talks "b".dé'}],
        "dev": {"source": "dev.de", "reference": ["dev.en", "dev.en2"]},
        "models": {"back": {"preset": "rnnsearch", "right_to_left": True, "dropout": 0.2}},
        "features": {"NMT": "neural:back", "L M": "kenlm:x"},
        "tuning": {},
    }
    comments = {"": ["An experiment."], "dev": ["Weights are tuned on it."], "test": ["Many of them."]}
    comments |= {"models": ["6,000 pairs"], "features.NMT": ["One of us."]}
    assert write_experiment(values, comments) == TEXT


def test_moved_paths_lead_to_the_same_files(tmp_path: Path) -> None:
    values = {
        "start": "../moses.ini",
        "dev": {"source": "/abs/dev.de", "reference": ["dev.en"]},
        "test": [{"name": "news", "source": "sub/news.de"}],
        "models": {"back": {"preset": "rnnsearch"}},
    }
    old, new = tmp_path / "one", tmp_path / "two" / "work"
    assert moved(values, old, new) == {
        "start": "../../moses.ini",
        "dev": {"source": "/abs/dev.de", "reference": ["../../one/dev.en"]},
        "test": [{"name": "news", "source": "../../one/sub/news.de"}],
    }
