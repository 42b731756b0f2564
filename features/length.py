"""The number of words of a candidate."""

from collections.abc import Sequence

import numpy as np

from features.feature import Array, Candidates, Resources


class Length:
    """One value: the number of tokens."""

    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = "length"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        lengths = [[len(hypothesis)] for candidates in sentences for hypothesis in candidates.hypotheses]
        return np.array(lengths, dtype=np.float64)
