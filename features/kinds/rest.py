"""What Moses has in its total and does not print as a feature, such as UnknownWordPenalty."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates, Resources
from moses_io.errors import InputError
from moses_io.streams import digest
from moses_io.weights import read_weights

ROUNDING = 0.01
"""A smaller rest is what printing with six digits leaves."""


class Rest:
    """One value: the total less the weighted features that the list prints, 0 where that is no more than rounding.

    With weight 1 beside the decoder's weights it restores the total.

    Raises:
        InputError: the file is no weights.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._weights = read_weights(argument)
        self.signature = f"rest|sha256:{digest(Path(argument))}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        return np.array(
            [[self._rest(candidates, row)] for candidates in sentences for row in range(len(candidates.lines))]
        )

    def _rest(self, candidates: Candidates, row: int) -> float:
        line = candidates.lines[row]
        if line.total is None:
            raise InputError(f"feature 'rest', sentence {candidates.sentence}: hypothesis {row + 1} has no total")
        if not any(name in self._weights for name, _ in line.dense):
            raise InputError("feature 'rest': no feature of the list has a weight in this file; is it the decoder's?")
        printed = 0.0
        for name, values in (*line.dense, *((name, (value,)) for name, value in line.sparse.items())):
            weights = self._weights.get(name, (0.0,) * len(values))
            if len(weights) != len(values):
                raise InputError(
                    f"feature 'rest': {name!r} has {len(values)} values in the list, {len(weights)} weights"
                )
            printed += sum(weight * value for weight, value in zip(weights, values, strict=True))
        rest = line.total - printed
        return rest if abs(rest) >= ROUNDING else 0.0
