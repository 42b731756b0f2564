from typing import Any

from rerank.experiment.toml import parse_toml
from rerank.experiment.writing import write_experiment

TEXT = """\
# An experiment.

# All results.
output = "work"

# Many of them.
[[test]]
name = "a"
nbest = "a \\"b\\""

[[test]]
name = "c"
nbest = "é"

[features]
# One of us.
NMT = "neural:forward"
"L M" = "kenlm:x"
"""


def test_comments_stand_above_keys_and_entries() -> None:
    """What is read back are the values alone."""
    tests = [{"name": "a", "nbest": 'a "b"'}, {"name": "c", "nbest": "é"}]
    values: dict[str, Any] = {
        "output": "work",
        "test": tests,
        "features": {"NMT": "neural:forward", "L M": "kenlm:x"},
    }
    remarks = {"": ["An experiment."], "output": ["All results."], "test": ["Many of them."]}
    text = write_experiment(values, remarks | {"features.NMT": ["One of us."]})
    assert text == TEXT
    assert parse_toml(text.encode(), "e.toml") == values
