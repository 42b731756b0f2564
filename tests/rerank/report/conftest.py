from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.linear.selection import LinearModel
from rerank.metrics.filters import Filters
from rerank.report.breakdown import Depths, Margins
from rerank.report.listed import read_listed

Read = Callable[..., tuple[Depths, Margins]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a list of one feature, `F`, with weight 1."""

    def look(text: str, references: list[list[str]], filtered: str = "") -> tuple[Depths, Margins]:
        (tmp_path / "list").write_text(text)
        depths, margins, model = Depths(references), Margins([]), LinearModel({"F": (1.0,)}, "weights")
        for listed in read_listed(str(tmp_path / "list"), references, 99, Filters(filtered)):
            depths.add(listed, model.scores(listed.candidates))
            margins.add(listed.candidates)
        return depths, margins

    return look
