"""Scores of summed statistics are sacreBLEU's corpus scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from moses_io.errors import InputError
from rerank.metrics.metric import METRICS, Metric

SPACES = ["\u00a0", "\u3000", "\u2028", "\u0085", "\u2009"]
words = st.sampled_from(["a", "cat", "mat", "the", ".", "don't", "größe", *(f"x{space}y" for space in SPACES)])
lines = st.lists(words, max_size=9).map(" ".join)
corpora = st.lists(st.tuples(lines, lines, lines), min_size=1, max_size=6)


@given(corpora)
@pytest.mark.parametrize(
    ("name", "scorer"),
    [("chrf", CHRF()), ("chrf3", CHRF(beta=3)), ("chrf++", CHRF(word_order=2)), ("ter", TER())],
    ids=["chrf", "chrf3", "chrf++", "ter"],
)
def test_corpus_scores(name: str, scorer: CHRF | TER, corpus: list[tuple[str, str, str]]) -> None:
    metric = Metric(name)
    total = np.sum([metric.counter([first, second])(text) for text, first, second in corpus], axis=0)
    texts, *references = (list(column) for column in zip(*corpus, strict=True))
    theirs = scorer.corpus_score(texts, references).score / 100
    assert float(metric.formula.score(total)) == pytest.approx(1 - theirs if name == "ter" else theirs, abs=1e-9)


def test_a_sum_of_metrics() -> None:
    both, parts = Metric("bleu+chrf++:3,1"), [Metric("bleu"), Metric("chrf++")]
    text, references = "the cat sat on the mat", ["the cat sat on a mat", "a cat sat there"]
    scores = [float(part.formula.score(np.array(part.counter(references)(text)))) for part in parts]
    assert float(both.formula.score(np.array(both.counter(references)(text)))) == pytest.approx(
        0.75 * scores[0] + 0.25 * scores[1]
    )
    assert both.formula.size == sum(METRICS[name].size for name in ("bleu", "chrf++"))
    assert both.signature.startswith("bleu+chrf++:3,1(BLEU|")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blue", "unknown metric 'blue'; did you mean 'bleu'"),
        ("bleu+", "unknown metric ''"),
        ("bleu+ter:1", "expected 2 weights, found 1"),
        ("bleu+ter:1,x", "expected a number, found 'x' behind the colon"),
        ("bleu+ter:1e308,1e308", "larger than 3.4e\\+38, the largest number of Moses behind the colon"),
        ("bleu+ter:0,0", "one above 0"),
        ("bleu+ter:1,-1", "not negative"),
    ],
)
def test_what_is_no_metric(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Metric(text)
