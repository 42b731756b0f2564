"""Rows of integers of different lengths in one array, for large corpora."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from features.arrays import Integers

Whole = NDArray[np.integer[Any]]
"""Integers of any size."""


ITERATED = 2**12
"""Number of rows that are converted to lists together."""


class Ragged:
    """R rows of integers of different lengths, N values in all.

    Attributes:
        values: (N,) values of all rows.
        ends: (R + 1,) ends of the rows: row r is values[ends[r] : ends[r + 1]].
    """

    def __init__(self, values: Whole, ends: Integers) -> None:
        self.values, self.ends = values, ends

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> "Ragged":
        """Copy lists of integers below 2^31."""
        lists = list(rows)
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))  # (R,)
        return cls(np.fromiter(chain.from_iterable(lists), np.int32), ends_of(lengths))

    @classmethod
    def joined(cls, parts: "Sequence[Ragged]") -> "Ragged":
        """Return the rows of one or several parts."""
        lengths = np.concatenate([part.lengths for part in parts])  # (R,)
        return cls(np.concatenate([part.values for part in parts]), ends_of(lengths))  # (N,), (R + 1,)

    @cached_property
    def lengths(self) -> Integers:
        """(R,) number of values of each row."""
        return np.diff(self.ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, row: int) -> list[int]:
        values: list[int] = self.values[self.ends[row] : self.ends[row + 1]].tolist()
        return values

    def __iter__(self) -> Iterator[list[int]]:
        for start in range(0, len(self), ITERATED):  # one list for many rows: a slice of an array takes longer
            block = self.part(slice(start, start + ITERATED))
            values: list[int] = block.values.tolist()
            yield from (values[first:last] for first, last in pairwise(block.ends.tolist()))

    def part(self, rows: slice) -> "Ragged":
        """Return adjacent rows, without a copy of their values. Raises `ValueError` for a slice with a step."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("a slice of rows cannot have a step")
        ends = self.ends[start : max(start, stop) + 1]
        return Ragged(self.values[ends[0] : ends[-1]], ends - ends[0])

    def take(self, rows: Whole) -> "Ragged":
        """Return the rows with these indices (M,)."""
        lengths = self.lengths[rows]  # (M,)
        return Ragged(self.values[concatenated(self.ends[rows], lengths)], ends_of(lengths))

    def select(self, mask: NDArray[np.bool_]) -> "Ragged":
        """Return the rows for which `mask` (R,) is true. If they are all rows, nothing is copied."""
        if mask.all():
            return self
        return Ragged(self.values[np.repeat(mask, self.lengths)], ends_of(self.lengths[mask]))

    def reversed(self) -> "Ragged":
        """Return the rows with their values in the opposite order."""
        mirrored = np.repeat(self.ends[1:] + self.ends[:-1] - 1, self.lengths) - np.arange(len(self.values))  # (N,)
        return Ragged(self.values[mirrored], self.ends)


def ends_of(lengths: Integers) -> Integers:
    """Return the ends (R + 1,) of rows of these lengths (R,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def concatenated(starts: Integers, lengths: Integers) -> Integers:
    """Return the integers start, …, start + length - 1 of all M ranges, for starts and lengths (M,)."""
    ends = np.cumsum(lengths)  # (M,)
    return np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
