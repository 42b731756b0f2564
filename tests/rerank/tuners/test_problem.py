from collections.abc import Callable

import numpy as np

from rerank.tuners.problem import Problem


def test_the_spread_is_within_sentences(make_problem: Callable[..., Problem]) -> None:
    """What only differs between sentences has none."""
    problem = make_problem(1, sentences=5, candidates=4)
    problem.candidates.dense[:, 0] = np.repeat(0.1 * np.arange(1.0, 6.0), 4)
    wanted = np.sqrt((problem.candidates.dense.reshape(5, 4, 3).std(axis=1) ** 2).mean(axis=0))
    wanted[0] = 0  # numpy's mean of 0.3, 0.3 … is not 0.3
    np.testing.assert_allclose(problem.spread(), wanted, atol=1e-12)
