from pathlib import Path

import numpy as np
import pytest

from rerank.analysis.listed import read_listed
from rerank.analysis.margins import Depths, Margins
from rerank.metrics.filters import Filters
from rerank.report.analysis import Analysis, analyse, charts, lines
from rerank.tuning.gain import Gain

GAIN = Gain("BLEU", 1.0, 2.0, "", None, None, None, "", (), "", ())


def analysed(folder: Path, source: str, reference: str, line: str, filters: Filters) -> Analysis:
    """A list of one candidate, which both systems chose."""
    (folder / "list").write_text(f"0 ||| {line} ||| F= 1 ||| 0\n")
    references, margins = [[reference]], Margins([])
    depths = Depths(references)
    for listed in read_listed(str(folder / "list"), references, 1, filters):
        depths.add(listed, np.ones(1))
        margins.add(listed.candidates)
    systems = {"moses": [line], "reranked": [line]}
    return analyse(depths, margins, [source], references, systems, str(folder / "train"), filters)


@pytest.mark.parametrize(("filtered", "known"), [("", {"0": 4}), ("debpe", {"0": 3, "2-4": 1})])
def test_words_of_the_training_text_are_compared_after_the_filters(
    tmp_path: Path, filtered: str, known: dict[str, int]
) -> None:
    (tmp_path / "train").write_text("wo@@ rd\nwo@@ rd\n")
    analysis = analysed(tmp_path, "Wort", "word is not known", "word", Filters(filtered))
    assert analysis.judged and {each.name: each.words for each in analysis.judged.words} == known


def test_of_a_single_candidate_there_is_nothing_to_draw(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("a\n")
    analysis = analysed(tmp_path, "x", "b c d e", "a b c d", Filters(""))
    assert charts(analysis, None, GAIN, []) == []
    assert lines(analysis)[0] == "BLEU by depth         1"
    assert lines(analysis)[1:] == ["chosen            59.46", "best              59.46"]  # as sacreBLEU smooths it
