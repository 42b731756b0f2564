from pathlib import Path

import pytest

from moses_io.errors import InputError
from moses_io.nbest import read_nbest
from moses_io.text import read_lines
from rerank.metrics.filters import Filters
from rerank.report.evaluation import evaluate, look_up
from rerank.report.terminal import table


@pytest.fixture(scope="module")
def moses(sample: Path) -> list[str]:
    return [sentence_list.hypotheses[0].text for sentence_list in read_nbest(str(sample / "test.nbest.gz"))]


def test_numbers_that_moses_own_scripts_gave(sample: Path, moses: list[str]) -> None:
    """82.84 by multi-bleu.perl on Moses' output; 95.20 for the best candidates by smoothed sentence BLEU."""
    reference = read_lines(str(sample / "test.en"))
    facts = look_up(str(sample / "test.nbest.gz"), [reference], {"moses": moses, "x": ["x"] * 400}, Filters(""))
    evaluation = evaluate({"moses": moses, "best": facts.best}, [reference], facts=facts)
    assert f"{evaluation.scores['moses']['BLEU'].value:.2f}" == "82.84"
    assert f"{evaluation.scores['best']['BLEU'].value:.2f}" == "95.20"
    assert evaluation.best is not None
    assert evaluation.best["BLEU"].value == evaluation.scores["best"]["BLEU"].value
    assert evaluation.scores["moses"]["BLEU"].p_value is None
    assert evaluation.scores["best"]["BLEU"].p_value == pytest.approx(0.001, abs=1e-3)
    assert "tok:none" in evaluation.signatures["BLEU"]
    lines = table(evaluation)
    assert lines[0].split() == ["system", "BLEU", "p", "chrF", "p", "TER", "p"]
    assert lines[1].startswith("moses") and "82.84" in lines[1]
    assert lines[3].startswith("best candidates") and "95.20" in lines[3]
    assert {"systems", "signatures", "version", "best_candidates", "ranks"} == set(evaluation.as_json())
    assert (
        lines[-2] == "moses: 400 of 400 lines are in the list, 400 first in it, place 1.0 in the mean, 1 in the median"
    )
    assert lines[-1] == "x: 0 of 400 lines are in the list, 0 first in it"


def test_the_same_lines_are_no_better(moses: list[str], sample: Path) -> None:
    reference = read_lines(str(sample / "test.en"))
    scores = evaluate({"moses": moses, "again": list(moses), "other": ["x", *moses[1:]]}, [reference]).scores
    for metric in ("BLEU", "chrF", "TER"):
        assert scores["moses"][metric].p_value is None
        assert scores["again"][metric].p_value == 1
        assert scores["other"][metric].p_value not in (None, 1)


def test_a_system_of_another_length(sample: Path) -> None:
    with pytest.raises(InputError, match="x has 1 lines, the reference has 400"):
        look_up(str(sample / "test.nbest.gz"), [read_lines(str(sample / "test.en"))], {"x": ["x"]}, Filters(""))


def test_blanks_other_than_the_space_do_not_split_tokens() -> None:
    joined = ["a\u00a0b c\u2028d e f g"]
    apart = ["a b c d e f g"]
    assert evaluate({"x": joined}, [joined]).scores["x"]["BLEU"].value == pytest.approx(100)
    assert evaluate({"x": joined}, [apart]).scores["x"]["BLEU"].value < 50
    assert evaluate({"x": joined}, [apart], tokenize="13a").scores["x"]["BLEU"].value == pytest.approx(100)


def test_several_references() -> None:
    both = evaluate({"x": ["a b c d e"]}, [["a b c d e"], ["z"]])
    assert both.scores["x"]["BLEU"].value == pytest.approx(100)
    assert "nrefs:2" in both.signatures["BLEU"]


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="x has 2 lines, the reference has 1"):
        evaluate({"x": ["a", "b"]}, [["a"]])
    with pytest.raises(InputError, match="x:2: segmentation marks"):
        evaluate({"x": ["a", "b |0-1|"]}, [["a", "b"]])
    with pytest.raises(InputError, match="--tokenize klingon: sacreBLEU knows"):
        evaluate({"x": ["a"]}, [["a"]], tokenize="klingon")
