import base64
import json
import re
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from moses_io.nbest import read_nbest
from rerank.analysis.listed import merged, read_listed
from rerank.confidence.confidence import Measured
from rerank.linear.collecting import collect
from rerank.linear.selection import Estimate, Ranking
from rerank.metrics.filters import Filters
from rerank.report.changes import Change, Reranked, find_change, in_order
from rerank.report.page.candidates import Chunks
from rerank.report.page.document import Overview, page
from rerank.report.page.sentences import index

LIST = """\
0 ||| a b x ||| L= 1 T= 1 2 s_x= 1 FromA= 1 FromB= 0 ||| -1 ||| 0=0-1 1=2 ||| 0-0 1-2
0 ||| a <b> c ||| L= 2 T= 3 2 FromA= 1 FromB= 1 ||| -2 ||| 0=0-1 1=2 ||| 9-0
0 ||| a b c ||| L= 2 T= 1 2.5 FromA= 0 FromB= 1 ||| -3 ||| |||
2 ||| a\x1b c ||| L= 1 T= 1 1 FromA= 1 FromB= 1 ||| -1 ||| |||
"""
WEIGHTS = {"L": (0.5,), "T": (-1.0, 1.0), "s_x": (0.25,), "FromA": (0.0,), "FromB": (0.0,)}


class Explored(NamedTuple):
    """A set, and what was read of its list."""

    nbest: Path
    reranked: Reranked
    measured: Measured
    changes: list[Change]
    chunks: Chunks

    def html(self, content: Overview) -> str:
        columns = index(self.reranked, self.measured, self.changes, self.chunks.places)
        return "\n".join(page(content, self.chunks.elements(), columns))


@pytest.fixture
def explore(tmp_path: Path) -> Callable[..., Explored]:
    """Three sentences, the second one without candidates; of the first the third candidate is chosen."""

    def make(references: list[list[str]], nbest: str = LIST, more: int = 0) -> Explored:
        path = tmp_path / "list"
        path.write_text(nbest)
        source, before, after = ["s0 t0", "s1", "s2\x9b"], ["a b x", "", "a\x1b c"], ["a b c", "", "a\x1b c"]
        reranked = Reranked(
            source=[*source, *[""] * more],
            references=references,
            before=[*before, *[""] * more],
            after=[*after, *[""] * more],
            weights=WEIGHTS,
            filters=Filters(""),
        )
        estimates = {0: Estimate(41.256, 0.75), 2: Estimate(90, None)}
        rows = np.array([[0.1, 0.9], [0.25, 0.75], [1 / 3, 2 / 3]], dtype=np.float32)
        attention = {(0, "moses"): {"fwd\x07": rows}, (0, "reranked"): {"fwd\x07": rows[::-1]}}
        names = merged(next(read_nbest(str(path))))
        changes, chunks = [], Chunks(reranked, names, attention, BytesIO())
        for listed in read_listed(str(path), references, len(reranked.source), Filters("")):
            candidates = collect([listed.candidates])
            scores = candidates.scores(candidates.space.vector(WEIGHTS))
            change = find_change(listed.candidates, reranked, "chrf", estimates.get(listed.candidates.sentence))
            changes += [change] if change else []
            chunks.add(listed, Ranking(listed.candidates, scores), change.reasons if change else ())
        chunks.finish()
        return Explored(path, reranked, Measured("chrf", estimates), in_order(changes), chunks)

    return make


@pytest.fixture
def unpacked() -> Callable[[str], dict[str, Any]]:
    """Return the values of all elements of data in a page, by their ids."""

    def read(page: str) -> dict[str, Any]:
        elements = re.findall('<script type="application/octet-stream" id="([a-z0-9-]+)">([^<]*)</script>', page)
        return {name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in elements}

    return read
