import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rerank.confidence.measured import Measured
from rerank.metrics.filters import Filters
from rerank.report.attention import Attention
from rerank.report.changes import find_changes
from rerank.report.page.sentences import Explored
from rerank.selection import Estimate

LIST = """\
0 ||| a b x ||| L= 1 T= 1 2 s_x= 1 FromA= 1 FromB= 0 ||| -1 ||| 0=0-1 1=2 ||| 0-0 1-2
0 ||| a <b> c ||| L= 2 T= 3 2 FromA= 1 FromB= 1 ||| -2 ||| 0=0-1 1=2 ||| 9-0
0 ||| a b c ||| L= 2 T= 1 2.5 FromA= 0 FromB= 1 ||| -3 ||| |||
2 ||| a\x1b c ||| L= 1 T= 1 1 FromA= 1 FromB= 1 ||| -1 ||| |||
"""
WEIGHTS = {"L": (0.5,), "T": (-1.0, 1.0), "s_x": (0.25,), "FromA": (0.0,), "FromB": (0.0,)}


@pytest.fixture
def explore(tmp_path: Path) -> Callable[..., Explored]:
    """Three sentences, the second one without candidates; of the first the third candidate is chosen."""

    def make(references: list[list[str]], nbest: str = LIST) -> Explored:
        path = tmp_path / "list"
        path.write_text(nbest)
        source, before, after = ["s0 t0", "s1", "s2\x9b"], ["a b x", "", "a\x1b c"], ["a b c", "", "a\x1b c"]
        measured = Measured("chrf", {0: Estimate(41.256, 0.75), 2: Estimate(90, None)})
        filters = Filters("")
        changes = find_changes(str(path), WEIGHTS, source, references, before, after, filters, measured)
        rows = np.array([[0.1, 0.9], [0.25, 0.75], [1 / 3, 2 / 3]], dtype=np.float32)
        return Explored(
            nbest=str(path),
            weights=WEIGHTS,
            source=source,
            references=references,
            before=before,
            after=after,
            filters=filters,
            measured=measured,
            changes=changes,
            attention={(0, "moses"): [Attention("fwd\x07", rows)], (0, "reranked"): [Attention("fwd\x07", rows[::-1])]},
        )

    return make


@pytest.fixture
def unpacked() -> Callable[[str], dict[str, Any]]:
    """Return the values of all elements of data in a page, by their ids."""

    def read(page: str) -> dict[str, Any]:
        elements = re.findall('<script type="application/octet-stream" id="([a-z0-9-]+)">([^<]*)</script>', page)
        return {name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in elements}

    return read
