"""The randomization test, compared with the enumeration of all swaps and with known properties of p-values."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import kstest

from features.arrays import Array
from rerank.metrics import significance
from rerank.metrics.metric import METRICS, Metric
from rerank.metrics.significance import TRIALS, p_value, replicates_p_value

METRIC_NAMES = ["bleu", "chrf", "ter", "bleu+ter:0.7,0.3"]
BLEU = Metric("bleu").formula


def counted(metric: str, seed: int, sentences: int) -> Array:
    """Return statistics of random lines, of shape (sentences, size)."""
    rng = np.random.default_rng(seed)
    lines = [" ".join(rng.choice(list("aabc"), 8)) for _ in range(sentences)]
    return np.array([Metric(metric).counter(["a b a b a a c a"])(line) for line in lines])


def p_value_of_all_swaps(metric: str, one: Array, other: Array) -> float:
    score = Metric(metric).formula.score
    differences = []
    for swaps in product([False, True], repeat=len(one)):
        sides = (np.where(np.array(swaps)[:, None], *pair).sum(axis=0) for pair in ((one, other), (other, one)))
        before, after = (float(score(side)) for side in sides)
        differences.append(abs(before - after))
    return float(np.mean(np.array(differences) >= differences[0] - 1e-9))


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_all_swaps_of_a_few_sentences(metric: str) -> None:
    one, other = counted(metric, 1, 8), counted(metric, 2, 8)
    assert p_value(Metric(metric).formula.score, one, other) == p_value_of_all_swaps(metric, one, other) < 1


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_sampled_swaps_approximate_all_swaps(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = counted(metric, 3, 12), counted(metric, 8, 12)
    exact = p_value(Metric(metric).formula.score, one, other)
    monkeypatch.setattr(significance, "TRIALS", 1000)
    drawn = p_value(Metric(metric).formula.score, one, other)
    assert drawn != exact
    assert drawn == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 1000) ** 0.5)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_the_order_of_the_systems_does_not_matter(metric: str) -> None:
    one, other = counted(metric, 5, 60), counted(metric, 6, 60)
    score = Metric(metric).formula.score
    assert p_value(score, one, other) == p_value(score, other, one) < 1


@pytest.mark.parametrize("metric", METRICS)
def test_differences_that_have_a_p_value_of_1(metric: str) -> None:
    """Equal outputs, a difference in one sentence, and two sentences whose differences cancel."""
    score, one = Metric(metric).formula.score, counted(metric, 7, 30)
    two = one.copy()
    two[[0, 1]] = one[[1, 0]]
    for other in (one.copy(), np.concatenate([counted(metric, 8, 1), one[1:]]), two):
        assert p_value(score, one, other) == 1


def test_systematic_differences_are_significant() -> None:
    """For ten worse sentences, 2 of 1,024 swaps are as extreme. For 400, none of the sampled swaps is."""
    right, wrong = ([Metric("bleu").counter(["a b c d e"])(text)] for text in ("a b c d e", "a b c d x"))
    assert p_value(BLEU.score, np.array(right * 10), np.array(wrong * 10)) == 2 / 1024
    assert p_value(BLEU.score, np.array(right * 400), np.array(wrong * 400)) == 1 / (TRIALS + 1)


def test_rounding_does_not_break_ties() -> None:
    """Tenths are not exact in float64 and their sums are rounded. Whole numbers are exact."""
    numbers = np.random.default_rng(1).integers(-5, 6, (12, 1)).astype(np.float64)
    whole, tenths = (p_value(lambda rows: rows[:, 0], 0 * numbers, each) for each in (numbers, numbers / 10))
    assert tenths == whole < 1


def test_systems_of_one_distribution_have_uniform_p_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "TRIALS", 500)
    known, rng = counted("bleu", 9, 300), np.random.default_rng(1)
    draws = [rng.choice(known, (2, 60)) for _ in range(200)]  # each (2, 60, size)
    assert kstest([p_value(BLEU.score, *draw) for draw in draws], "uniform").pvalue > 0.01


def p_value_of_all_permutations(one: Array, other: Array) -> float:
    """Return the exact p-value by all assignments of outputs, for statistics of shape (replicates, n, size)."""
    pool = np.concatenate([one, other])  # (R, n, size)
    orders = list(permutations(range(len(pool))))
    differences = []
    for deal in product(orders, repeat=pool.shape[1]):
        sums = sum(pool[list(order), sentence] for sentence, order in enumerate(deal))  # (R, size)
        scores = BLEU.score(np.array(sums))  # (R,)
        differences.append(abs(scores[: len(one)].mean() - scores[len(one) :].mean()))
    return float(np.mean(np.array(differences) >= differences[0] - 1e-9))


@pytest.mark.parametrize(("replicates", "others", "sentences"), [(1, 1, 6), (2, 1, 4), (2, 2, 3)])
def test_replicates_are_permuted_within_sentences(replicates: int, others: int, sentences: int) -> None:
    """The sampled p-value is within 5 standard errors of the exact p-value."""
    for seed in range(3):
        one, other = (
            np.array([counted("bleu", 100 * seed + first + number, sentences) for number in range(count)])
            for first, count in ((1, replicates), (51, others))
        )
        expected = p_value_of_all_permutations(one, other)
        margin = 5 * (expected * (1 - expected) / TRIALS) ** 0.5 + 1 / TRIALS
        assert replicates_p_value(BLEU.score, one, other) == pytest.approx(expected, abs=margin)


def test_equal_replicates_have_a_p_value_of_1() -> None:
    replicas = np.array([counted("bleu", seed, 20) for seed in range(3)])
    assert replicates_p_value(BLEU.score, replicas, replicas) == 1
    assert replicates_p_value(BLEU.score, replicas[:1], replicas[:1]) == 1
