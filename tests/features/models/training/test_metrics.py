import json
import math
from pathlib import Path
from typing import Any

import pytest

from features.models.training.metrics import dev_perplexity


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"dev_perplexity": 5.5}, {"dev_perplexity": 4}, {"dev_perplexity": 6.0}], 4.0),
        ([{"dev_perplexity": 6.0, "best": True}, {"dev_perplexity": 5.0, "best": True}], 5.0),
        # One of two directions: its joint perplexity was best in the first epoch.
        ([{"dev_perplexity": 5.0, "best": True}, {"dev_perplexity": 4.0, "best": False}], 5.0),
        ([{"dev_perplexity": 5.0, "best": True}, {"dev_perplexity": math.nan, "best": False}], 5.0),
        ([], math.inf),
    ],
)
def test_dev_perplexity_is_that_of_the_saved_weights(
    tmp_path: Path, rows: list[dict[str, Any]], expected: float
) -> None:
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert dev_perplexity(tmp_path) == expected


def test_a_folder_without_metrics_has_no_perplexity(tmp_path: Path) -> None:
    assert dev_perplexity(tmp_path) == math.inf
