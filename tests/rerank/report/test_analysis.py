from pathlib import Path

import pytest

from rerank.analysis.listed import read_listed
from rerank.metrics.filters import Filters
from rerank.report.analysis import analyse, charts, lines
from rerank.tuning.gain import Gain

GAIN = Gain("BLEU", 1.0, 2.0, "", None, None, None, "", (), "", ())


@pytest.mark.parametrize(("filtered", "known"), [("", {"0": 4}), ("debpe", {"0": 3, "2-4": 1})])
def test_words_of_the_training_text_are_compared_after_the_filters(
    tmp_path: Path, filtered: str, known: dict[str, int]
) -> None:
    (tmp_path / "train").write_text("wo@@ rd\nwo@@ rd\n")
    (tmp_path / "list").write_text("0 ||| word ||| F= 1 ||| 0\n")
    filters, references = Filters(filtered), [["word is not known"]]
    listed = read_listed(str(tmp_path / "list"), {"F": (1.0,)}, references, filters)
    systems = {"moses": ["word"], "reranked": ["word"]}
    analysis = analyse(listed, ["Wort"], references, systems, str(tmp_path / "train"), filters)
    assert analysis.judged and {each.name: each.words for each in analysis.judged.words} == known


def test_of_a_single_candidate_there_is_nothing_to_draw(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("a\n")
    (tmp_path / "list").write_text("0 ||| a b c d ||| F= 1 ||| 0\n")
    filters, references = Filters(""), [["b c d e"]]
    listed = read_listed(str(tmp_path / "list"), {"F": (1.0,)}, references, filters)
    systems = {"moses": ["a b c d"], "reranked": ["a b c d"]}
    analysis = analyse(listed, ["x"], references, systems, str(tmp_path / "train"), filters)
    assert charts(analysis, None, GAIN) == []
    assert lines(analysis)[0] == "BLEU by depth         1"
    assert lines(analysis)[1:] == ["chosen            59.46", "best              59.46"]  # as sacreBLEU smooths it
