"""Random candidates of a list, scored again one by one, to show that scoring many together changes nothing."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from features.feature import Array, Candidates


class Sample:
    """Up to `size` candidates of a list, each as likely as any other, with the values that they were given.

    Reservoir sampling (Vitter 1985, algorithm R): the list is seen once and its length need not be known.
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size, self._rng, self._seen = size, rng, 0
        self._kept: list[tuple[Candidates, list[Array]]] = []

    def add(self, sentences: Sequence[Candidates], columns: Sequence[Array]) -> None:
        """Look at some sentences and, for each feature, the (N, values) of their candidates."""
        row = 0
        for candidates in sentences:
            for hypothesis in candidates.hypotheses:
                self._seen += 1
                place = len(self._kept) if len(self._kept) < self._size else self._rng.randrange(self._seen)
                if place < self._size:
                    one = Candidates(candidates.sentence, candidates.source, (hypothesis,))
                    self._kept[place : place + 1] = [(one, [values[row].copy() for values in columns])]
                row += 1

    def largest_difference(self, number: int, feature: Any) -> tuple[int, float]:
        """Score the sample by the method `alone` of feature `number`; return its size and the largest difference."""
        differences = [float(np.abs(feature.alone([one]) - values[number]).max()) for one, values in self._kept]
        return len(differences), max(differences, default=0.0)
