from collections.abc import Callable

import numpy as np
import pytest

from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.problem import Problem


def make_problem(seed: int, sentences: int = 20, candidates: int = 8, good: int = 0) -> Problem:
    """Return random candidates whose column `good` grows with BLEU. The other two columns are random."""
    rng = np.random.default_rng(seed)
    size = sentences * candidates
    matches = np.sort(rng.integers(1, 9, (size, 4)), axis=1)[:, ::-1]
    statistics = np.empty((size, BLEU_SIZE))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2] = matches, [10, 9, 8, 7]
    statistics[:, -1] = 10
    dense = rng.normal(size=(size, 3))
    dense[:, good] = matches.sum(axis=1)
    nothing = Sparse(np.zeros(size + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    offsets = np.arange(0, size + 1, candidates)
    space = FeatureSpace((("F", 3),))
    listed = Candidates(space, np.arange(sentences), offsets, dense, nothing)
    return Problem(listed, statistics, Metric("bleu").formula, np.array([0.0, 1.0, 0.0]))


@pytest.fixture(name="make_problem")
def make_problem_fixture() -> Callable[..., Problem]:
    return make_problem
