from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.analysis.listed import Listed, read_listed
from rerank.metrics.filters import Filters


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Listed]:
    """Read a list of one feature, `F`, with weight 1."""

    def listed(text: str, references: list[list[str]], filtered: str = "") -> Listed:
        (tmp_path / "list").write_text(text)
        return read_listed(str(tmp_path / "list"), {"F": (1.0,)}, references, Filters(filtered))

    return listed
