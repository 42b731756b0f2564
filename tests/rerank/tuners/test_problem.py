from collections.abc import Callable

import numpy as np

from rerank.tuners.problem import Problem


def test_the_spread_is_within_sentences(problem: Callable[..., Problem]) -> None:
    """What only differs between sentences has none."""
    given = problem(1, sentences=5, candidates=4)
    given.candidates.dense[:, 0] = np.repeat(np.arange(5.0), 4)
    wanted = np.sqrt((given.candidates.dense.reshape(5, 4, 3).std(axis=1) ** 2).mean(axis=0))
    assert wanted[0] == 0
    np.testing.assert_allclose(given.spread(), wanted, atol=1e-12)
