from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.filters import Filters
from moses_io.weights import WeightFile
from rerank.linear.ranking import LinearModel
from rerank.report.breakdown import Depths, margin
from rerank.report.listed import read_listed

Read = Callable[..., tuple[Depths, dict[int, float]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads a list with one feature, `F`, of weight 1."""

    def look(text: str, references: list[list[str]], filtered: str = "") -> tuple[Depths, dict[int, float]]:
        (tmp_path / "list").write_text(text)
        depths, margins = Depths(references), dict[int, float]()
        model = LinearModel(WeightFile({"F": (1.0,)}), "weights")
        for listed in read_listed(str(tmp_path / "list"), references, 99, Filters(filtered)):
            depths.add(listed, model.scores(listed.candidates))
            if (sure := margin(listed.candidates, [])) is not None:
                margins[listed.candidates.sentence] = sure
        return depths, margins

    return look
