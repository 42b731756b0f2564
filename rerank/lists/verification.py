"""Random candidates of a list, scored again one by one, to show that scoring many together changes nothing."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from features.arrays import Array
from features.feature import Sentence
from features.progress import progress_bar


class Sample:
    """Up to `size` candidates of a list, each as likely as any other, with the values that they were given.

    Reservoir sampling (Vitter 1985, algorithm R): the list is seen once and its length need not be known.
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size, self._rng, self._seen = size, rng, 0
        self._kept: list[tuple[Sentence, list[Array]]] = []

    def add(self, sentences: Sequence[Sentence], columns: Sequence[Array]) -> None:
        """Look at some sentences and, for each feature, the (N, values) of their candidates."""
        row = 0
        for sentence in sentences:
            for number, hypothesis in enumerate(sentence.hypotheses):
                self._seen += 1
                place = len(self._kept) if len(self._kept) < self._size else self._rng.randrange(self._seen)
                if place < self._size:
                    one = replace(sentence, hypotheses=(hypothesis,), lines=sentence.lines[number : number + 1])
                    self._kept[place : place + 1] = [(one, [values[row].copy() for values in columns])]
                row += 1

    def largest_difference(self, number: int, score: Callable[[Sentence], Array]) -> tuple[int, float]:
        """Score the sample in another way; return its size and the largest difference from feature `number`."""
        differences = []
        with progress_bar("verify", len(self._kept)) as bar:
            for one, values in self._kept:
                differences.append(float(np.abs(score(one) - values[number]).max()))
                bar.advance(1, "")
        return len(differences), max(differences, default=0.0)
