"""Scores of the Moses scripts on a larger real list. Needs MOSES_RERANK_DATA."""

from pathlib import Path

from moses_io.files.text import read_lines
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.metrics.evaluation import evaluate
from rerank.report.listed import find_in_list


def test_scores_of_multi30k_equal_the_moses_scripts(data: Path) -> None:
    """BLEU by multi-bleu.perl of the first candidates, and of the oracle by smoothed sentence BLEU."""
    folder = data / "multi30k-de-en"
    nbest, reference = str(folder / "test.nbest.gz"), read_lines(str(folder / "test.en"))
    lists = list(read_nbest(nbest))
    assert (len(lists), sum(len(item.hypotheses) for item in lists)) == (1000, 73482)
    first = [item.hypotheses[0].text for item in lists]
    facts = find_in_list(nbest, [reference], {"moses": first}, Filters(""))
    evaluation = evaluate({"moses": first}, [reference], facts=facts)
    assert set(facts.ranks["moses"]) == {1}
    assert f"{evaluation.scores['moses']['BLEU'].value:.2f}" == "39.84"
    assert evaluation.oracle is not None
    assert f"{evaluation.oracle['BLEU'].value:.2f}" == "59.44"
