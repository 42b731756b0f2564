import numpy as np
import pytest

from moses_io.errors import InputError
from rerank.bleu import STATISTICS, corpus_bleu
from rerank.candidates import Array, Candidates, FeatureSpace, Sparse
from rerank.kbmira import KbmiraSettings, measure, tune


def problem(seed: int, sentences: int = 20, candidates: int = 8, good: int = 0) -> tuple[Candidates, Array]:
    """Random candidates whose column `good` grows with their BLEU, the other two columns saying nothing."""
    rng = np.random.default_rng(seed)
    size = sentences * candidates
    matches = np.sort(rng.integers(1, 9, (size, 4)), axis=1)[:, ::-1]
    statistics = np.empty((size, STATISTICS))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2] = matches, [10, 9, 8, 7]
    statistics[:, -1] = 10
    dense = rng.normal(size=(size, 3))
    dense[:, good] = matches.sum(axis=1)
    offsets = np.arange(0, size + 1, candidates)
    return Candidates(FeatureSpace((("F", 3),)), np.arange(sentences), offsets, dense, None), statistics


@pytest.mark.parametrize("seed", range(3))
def test_a_good_feature_is_found(seed: int) -> None:
    candidates, statistics = problem(seed)
    tuned = tune(candidates, statistics, np.array([0.0, 1.0, 0.0]), KbmiraSettings(seed=seed))
    assert tuned.start < tuned.metric == measure(candidates, statistics, tuned.weights)
    best = candidates.best(statistics[:, 0:-1:2].sum(axis=1))
    assert tuned.metric > tuned.start + 0.9 * (float(corpus_bleu(statistics[best].sum(axis=0))) - tuned.start)


def test_one_step_is_the_closed_form() -> None:
    candidates, statistics = problem(0, sentences=1)
    start = np.array([-0.1, 0.2, 0.3])
    tuned = tune(candidates, statistics, start, KbmiraSettings(iterations=1, step=1e9))
    background = statistics + 1
    value = corpus_bleu(background) * background[:, -1]
    score = candidates.dense @ start
    hope, fear = np.argmax(score + value), np.argmax(score - value)
    difference = candidates.dense[hope] - candidates.dense[fear]
    loss = value[hope] - value[fear] - start @ difference
    updated = start + loss / (difference @ difference) * difference
    np.testing.assert_allclose(tuned.weights, start + updated, atol=1e-12)


def test_sparse_columns_are_tuned_like_dense_ones() -> None:
    candidates, statistics = problem(1)
    rows = np.arange(len(candidates.dense))
    sparse = Sparse(np.append(rows, len(rows)), np.zeros(len(rows), dtype=np.int64), candidates.dense[:, 2])
    split = Candidates(
        FeatureSpace((("F", 2),), ("s_x",)), candidates.sentences, candidates.offsets, candidates.dense[:, :2], sparse
    )
    start = np.array([0.1, 0.2, 0.3])
    whole = tune(candidates, statistics, start, KbmiraSettings(iterations=3))
    parts = tune(split, statistics, start, KbmiraSettings(iterations=3))
    np.testing.assert_allclose(parts.weights, whole.weights, atol=1e-9)


def test_one_seed_gives_the_same_weights() -> None:
    candidates, statistics = problem(2)
    start = np.array([0.0, 1.0, 0.0])
    runs = [tune(candidates, statistics, start, KbmiraSettings(iterations=2, seed=s)).weights for s in (4, 4, 5)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_the_start_is_kept_where_nothing_is_better() -> None:
    candidates, statistics = problem(3)
    statistics[:] = statistics[0]
    tuned = tune(candidates, statistics, np.array([1.0, 2.0, 3.0]), KbmiraSettings(iterations=2))
    assert tuned.weights.tolist() == [1, 2, 3]


def test_bleu_of_zero_is_an_error() -> None:
    candidates, statistics = problem(4)
    statistics[:, 6] = 0
    with pytest.raises(InputError, match="BLEU on the tuning set is 0 whatever the weights"):
        tune(candidates, statistics, np.ones(3), KbmiraSettings(iterations=1))
