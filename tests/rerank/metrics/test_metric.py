"""Corpus scores of summed statistics equal those of sacreBLEU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from features.arrays import Array
from moses_io.files.errors import InputError
from rerank.metrics.metric import METRICS, Metric, SentenceReferences

SPACES = ["\u00a0", "\u3000", "\u2028", "\u0085", "\u2009"]
words = st.sampled_from(["a", "cat", "mat", "the", ".", "don't", "größe", *(f"x{space}y" for space in SPACES)])
lines = st.lists(words, max_size=9).map(" ".join)


blanks = st.sampled_from(["", " ", "  ", "\u3000"])
gapped = st.lists(st.tuples(lines, *[st.one_of(lines, blanks)] * 3), min_size=1, max_size=6)
characters = st.lists(st.sampled_from("abcde"), min_size=1, max_size=9).map(" ".join)
hypotheses = st.one_of(characters, st.sampled_from(["", " "]))
gapped_characters = st.lists(st.tuples(hypotheses, *[st.one_of(characters, blanks)] * 3), min_size=1, max_size=6)


@given(gapped)
@pytest.mark.parametrize(
    ("name", "scorer"),
    [("chrf", CHRF()), ("chrf3", CHRF(beta=3)), ("chrf++", CHRF(word_order=2)), ("ter", TER())],
    ids=["chrf", "chrf3", "chrf++", "ter"],
)
def test_corpus_scores_equal_sacrebleu(name: str, scorer: CHRF | TER, corpus: list[tuple[str, ...]]) -> None:
    assert_as_with_none(name, scorer, corpus)


@given(gapped_characters)
def test_corpus_scores_of_bleu_equal_sacrebleu(corpus: list[tuple[str, ...]]) -> None:
    assert_as_with_none("bleu", BLEU(tokenize="none", smooth_method="none", force=True), corpus)


def assert_as_with_none(name: str, scorer: BLEU | CHRF | TER, corpus: list[tuple[str, ...]]) -> None:
    """Compare with sacreBLEU, which represents a missing reference by None."""
    metric = Metric(name)
    total = np.sum([metric.counter(references)(text) for text, *references in corpus], axis=0)
    marked = []
    for _, *references in corpus:
        known = [line for line in references if line.strip()]
        marked.append([line if line in known else None for line in references] if known else references)
    texts = [text for text, *_ in corpus]
    theirs = scorer.corpus_score(texts, [list(column) for column in zip(*marked, strict=True)]).score / 100
    ours = float(metric.formula.score(np.array(total, dtype=float)))
    assert ours == pytest.approx(1 - theirs if name == "ter" else theirs, abs=1e-9)


@pytest.mark.parametrize("name", [*METRICS, "bleu+ter:0.7,0.3"])
def test_a_single_blank_reference_counts(name: str) -> None:
    """If all references are empty, the correct translation is empty."""
    one, two = (np.array(Metric(name).counter(references)("a b")) for references in ([""], ["", ""]))
    assert one.tolist() == two.tolist()
    assert one[-1] == 0  # reference length, or the last match statistic of chrF


def test_reference_lengths_of_bleu_exclude_missing_references() -> None:
    references = ["a b c d", "", "a b"]
    lengths = [Metric(name).counter(references)("")[-1] for name in ("bleu", "bleu-shortest", "bleu-average")]
    assert lengths == [2, 2, 3]


def test_a_weighted_sum_of_metrics() -> None:
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
        ("blue", "unknown metric 'blue'. Did you mean 'bleu'"),
        ("bleu+", "unknown metric 'bleu\\+'. Did you mean 'bleu'"),
        ("bleu+ter:1", "expected 2 weights, found 1"),
        ("bleu+ter:1,x", "weights: expected a number, found 'x'"),
        ("bleu+ter:1e308,1e308", "weights: the absolute value of '1e308' exceeds 3.4e\\+38"),
        ("chrf##", "unknown metric 'chrf##'. Did you mean 'chrf'"),
        ("bleu+ter:0,0", "one above 0"),
        ("bleu+ter:1,-1", "not negative"),
    ],
)
def test_wrong_metrics_are_errors(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Metric(text)


FORMULA = Metric("bleu").formula


def statistics(hypothesis: str, *references: str) -> Array:
    counted = SentenceReferences([reference.split(" ") for reference in references])
    return np.array(counted.statistics(hypothesis.split(" ") if hypothesis else []), dtype=float)


def test_bleu_statistics_as_in_scores_dat() -> None:
    assert statistics("a b c d e f", "a b c d e f").tolist() == [6, 6, 5, 5, 4, 4, 3, 3, 6]
    assert statistics("", "a b", "a b c").tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_matches_are_clipped_by_the_maximum_over_references() -> None:
    assert statistics("a a a", "a b", "a a").tolist()[:4] == [2, 3, 1, 2]


def test_the_shorter_of_two_equally_close_lengths_is_used() -> None:
    assert statistics("a b c", "a b c d", "a b")[-1] == 2


def test_smoothed_sentence_bleu() -> None:
    # matches 2/3, 1/2, 0/1 and 0/0, each with 1 added, for 3 words and a reference of 4
    expected = (3 / 4 * 2 / 3 * 1 / 2 * 1 / 1) ** 0.25 * np.exp(1 - 4 / 3)
    assert float(FORMULA.smoothed(statistics("a b x", "a b c d"))) == pytest.approx(expected)


def test_smoothed_sentence_bleu_of_empty_texts() -> None:
    assert float(FORMULA.smoothed(statistics("", "a b"))) == 0
    counted = SentenceReferences([[]])
    assert float(FORMULA.smoothed(np.array(counted.statistics([]), dtype=float))) == 1
