"""Numbers that Moses' own scripts gave on a larger real list; needs MOSES_RERANK_DATA."""

from pathlib import Path

import pytest

from moses_io.nbest import read_nbest
from moses_io.text import read_lines
from rerank.metrics.filters import Filters
from rerank.report.evaluation import evaluate, look_up


@pytest.mark.parametrize(
    ("name", "sentences", "candidates", "moses", "best"),
    [("dev", 1014, 76633, "40.49", "59.28"), ("test", 1000, 73482, "39.84", "59.44")],
)
def test_lists_of_multi30k(data: Path, name: str, sentences: int, candidates: int, moses: str, best: str) -> None:
    """BLEU by multi-bleu.perl of the first candidates, and of the best ones by smoothed sentence BLEU."""
    folder = data / "multi30k-de-en"
    nbest, reference = str(folder / f"{name}.nbest.gz"), read_lines(str(folder / f"{name}.en"))
    lists = list(read_nbest(nbest))
    assert (len(lists), sum(len(item.hypotheses) for item in lists)) == (sentences, candidates)
    first = [item.hypotheses[0].text for item in lists]
    facts = look_up(nbest, [reference], {"moses": first}, Filters(""))
    evaluation = evaluate({"moses": first}, [reference], facts=facts)
    assert set(facts.ranks["moses"]) == {1}
    assert f"{evaluation.scores['moses']['BLEU'].value:.2f}" == moses
    assert evaluation.best is not None
    assert f"{evaluation.best['BLEU'].value:.2f}" == best
