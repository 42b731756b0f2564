from collections.abc import Callable

import numpy as np

from rerank.candidates import Candidates, FeatureSpace, Sparse
from rerank.tuners.problem import Problem


def test_the_spread_is_within_sentences(problem: Callable[..., Problem]) -> None:
    """Of dense and of sparse features alike; what only differs between sentences has none."""
    given = problem(1, sentences=5, candidates=4)
    whole = given.candidates
    whole.dense[:, 0] = np.repeat(np.arange(5.0), 4)
    rows = np.arange(20)
    sparse = Sparse(np.append(rows, 20), np.zeros(20, dtype=np.int64), whole.dense[:, 2].copy())
    space = FeatureSpace((("F", 2),), ("s_x",))
    split = Candidates(space, whole.sentences, whole.offsets, whole.dense[:, :2], sparse)
    wanted = whole.dense.reshape(5, 4, 3).std(axis=1)
    wanted = np.sqrt((wanted**2).mean(axis=0))
    assert wanted[0] == 0
    for candidates in (whole, split):
        found = Problem(candidates, given.statistics, given.metric, given.start).spread()
        np.testing.assert_allclose(found, wanted, atol=1e-12)
