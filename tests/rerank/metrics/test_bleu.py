import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.arrays import Array
from rerank.metrics.bleu import SentenceReferences
from rerank.metrics.metric import Metric

FORMULA = Metric("bleu").formula
sentences = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=9)


def statistics(hypothesis: str, *references: str) -> Array:
    counted = SentenceReferences([reference.split(" ") for reference in references])
    return np.array(counted.statistics(hypothesis.split(" ") if hypothesis else []), dtype=float)


def test_statistics_as_in_scores_dat() -> None:
    assert statistics("a b c d e f", "a b c d e f").tolist() == [6, 6, 5, 5, 4, 4, 3, 3, 6]
    assert statistics("", "a b", "a b c").tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_matches_are_clipped_by_the_reference_that_has_most() -> None:
    assert statistics("a a a", "a b", "a a").tolist()[:4] == [2, 3, 1, 2]


def test_of_two_equally_close_lengths_the_shorter_counts() -> None:
    assert statistics("a b c", "a b c d", "a b")[-1] == 2


@given(st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=8))
def test_corpus_bleu_equals_sacrebleu(corpus: list[tuple[list[str], list[str], list[str]]]) -> None:
    from sacrebleu.metrics.bleu import BLEU

    summed = np.sum(
        [SentenceReferences([one, two]).statistics(hypothesis) for hypothesis, one, two in corpus], axis=0, dtype=float
    )
    lines = [[" ".join(row[column]) for row in corpus] for column in range(3)]
    theirs = BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(lines[0], lines[1:]).score
    assert 100 * float(FORMULA.score(summed)) == pytest.approx(theirs, abs=1e-9)


def test_smoothed_sentence_bleu_by_hand() -> None:
    # matches 2/3, 1/2, 0/1, 0/0, each with 1 added; 3 words against 4.
    expected = (3 / 4 * 2 / 3 * 1 / 2 * 1 / 1) ** 0.25 * np.exp(1 - 4 / 3)
    assert float(FORMULA.smoothed(statistics("a b x", "a b c d"))) == pytest.approx(expected)


def test_smoothed_sentence_bleu_of_nothing() -> None:
    assert float(FORMULA.smoothed(statistics("", "a b"))) == 0
    counted = SentenceReferences([[]])
    assert float(FORMULA.smoothed(np.array(counted.statistics([]), dtype=float))) == 1
