from pathlib import Path

import numpy as np
import pytest

from moses_io.files.errors import Fault
from moses_io.nbest import read_nbest
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.linear.collecting import collect

LIST = """\
2 ||| a ||| A= 1 2 B= 3 s_x= 1 ||| 0
2 ||| b ||| B= 6 A= 4 5 s_y= 2 s_x= -1 ||| 0
0 ||| c ||| A= 7 8 B= 9 ||| 0
"""


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    (tmp_path / "list").write_text(LIST)
    return collect(read_nbest(str(tmp_path / "list")))


def test_a_list_is_converted_to_arrays(candidates: Candidates) -> None:
    assert candidates.space == FeatureSpace((("A", 2), ("B", 1)), ("s_x", "s_y"))
    assert candidates.sentences.tolist() == [2, 0]
    assert candidates.offsets.tolist() == [0, 2, 3]
    assert candidates.dense.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert candidates.matrix().toarray().tolist() == [[1, 2, 3, 1, 0], [4, 5, 6, -1, 2], [7, 8, 9, 0, 0]]


def test_scores_are_dot_products_of_dense_and_sparse_values(candidates: Candidates) -> None:
    weights = np.array([1.0, -1.0, 0.5, 2.0, -3.0])
    rows = candidates.matrix().toarray()
    np.testing.assert_allclose(candidates.scores(weights), rows @ weights, atol=1e-12)
    factors = np.array([0.5, 0.25, 2.0])
    np.testing.assert_allclose(candidates.sums(factors), factors @ rows, atol=1e-12)


def test_select_sentences(candidates: Candidates) -> None:
    part = candidates.subset(np.array([1, 0]))
    assert part.sentences.tolist() == [0, 2] and part.offsets.tolist() == [0, 1, 3]
    assert part.matrix().toarray().tolist() == candidates.matrix().toarray()[[2, 0, 1]].tolist()


def test_select_candidates(candidates: Candidates) -> None:
    part = candidates.rows(np.array([1, 2]), candidates.sentences, np.array([0, 1, 2]))
    assert part.sentences.tolist() == [2, 0] and part.offsets.tolist() == [0, 1, 2]
    assert part.matrix().toarray().tolist() == candidates.matrix().toarray()[[1, 2]].tolist()


def test_the_first_of_equally_good_candidates_is_the_best(candidates: Candidates) -> None:
    assert candidates.best(np.array([1.0, 1.0, -5.0])).tolist() == [0, 2]
    assert candidates.best(np.array([1.0, 1.5, -5.0])).tolist() == [1, 2]


def test_weights_and_vectors(candidates: Candidates) -> None:
    space = candidates.space
    vector = space.vector({"B": (3.0,), "A": (1.0, 2.0), "s_y": (5.0,), "other": (9.0,)})
    assert vector.tolist() == [1, 2, 3, 0, 5]
    assert space.weights(vector) == {"A": (1.0, 2.0), "B": (3.0,), "s_y": (5.0,)}
    with pytest.raises(Fault, match=r"feature 'A' has 2 values in the list and 1 weight$"):
        space.vector({"A": (1.0,)})


def test_a_list_without_features(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("0 ||| a ||| ||| 0\n0 ||| b ||| ||| 0\n")
    candidates = collect(read_nbest(str(tmp_path / "list")))
    assert candidates.scores(np.zeros(0)).tolist() == [0, 0]


@pytest.mark.parametrize("copies", [3, 4, 5, 100])
@pytest.mark.parametrize("size", [1, 8, 14, 33])
def test_equal_candidates_have_equal_scores(size: int, copies: int) -> None:
    """Matrix products of BLAS differ by rounding between rows, which would break ties at random."""
    rng = np.random.default_rng(size)
    space = FeatureSpace((("A", size),), ())
    none = Sparse(np.zeros(copies + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    dense, sentence = np.tile(rng.normal(size=size), (copies, 1)), np.zeros(1, dtype=np.int64)
    equal = Candidates(space, sentence, np.array([0, copies]), dense, none)
    scores = equal.scores(rng.normal(size=size))
    assert np.unique(scores).size == 1 and equal.best(scores).tolist() == [0]
