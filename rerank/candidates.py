"""Candidates as arrays: the only thing that tuners see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_io.errors import InputError
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class FeatureSpace:
    """The order in which features stand in vectors: dense ones, value by value, then sparse ones.

    Attributes:
        dense: (name, number of values).
        sparse: names.
    """

    dense: tuple[tuple[str, int], ...]
    sparse: tuple[str, ...] = ()

    @property
    def dense_size(self) -> int:
        """Number of dense values."""
        return sum(count for _, count in self.dense)

    @property
    def size(self) -> int:
        """Number of all values."""
        return self.dense_size + len(self.sparse)

    def row(self, hypothesis: Hypothesis) -> list[float]:
        """Return the dense values of a hypothesis in this order."""
        found = dict(hypothesis.dense)
        return [value for name, _ in self.dense for value in found[name]]

    def vector(self, weights: Mapping[str, Sequence[float]]) -> Array:
        """(size,) the weights in this order, 0 for a feature without one.

        Raises:
            InputError: a feature has another number of weights than of values.
        """
        values: list[float] = []
        for name, count in (*self.dense, *((name, 1) for name in self.sparse)):
            found = weights.get(name, (0.0,) * count)
            if len(found) != count:
                raise InputError(f"feature {name!r} has {count} values in the list and {len(found)} weights")
            values.extend(found)
        return np.array(values)

    def weights(self, vector: Array) -> dict[str, tuple[float, ...]]:
        """Return the weights by name; sparse ones that are 0 are left out."""
        weights, start = {}, 0
        for name, count in self.dense:
            weights[name] = tuple(vector[start : start + count].tolist())
            start += count
        sparse = zip(self.sparse, vector[start:].tolist(), strict=True)
        return weights | {name: (value,) for name, value in sparse if value}


@dataclass(frozen=True)
class Sparse:
    """Sparse features by row: those of candidate n are columns[offsets[n]:offsets[n+1]], from 0, and their values."""

    offsets: Integers
    columns: Integers
    values: Array


@dataclass(frozen=True)
class Candidates:
    """The candidates of all sentences, in the order of the list.

    Attributes:
        space: names of the columns.
        sentences: (n,) ids.
        offsets: (n+1,) sentence k has the candidates offsets[k] … offsets[k+1]-1.
        dense: (N, D) dense values.
        sparse: sparse values, or None where the list has none.
    """

    space: FeatureSpace
    sentences: Integers
    offsets: Integers
    dense: Array
    sparse: Sparse | None

    def scores(self, weights: Array) -> Array:
        """(N,) model score of every candidate under (size,) weights."""
        split = self.space.dense_size
        scores: Array = self.dense @ weights[:split]
        if self.sparse is None:
            return scores
        products = self.sparse.values * weights[split:][self.sparse.columns]
        rows = np.repeat(np.arange(len(scores)), np.diff(self.sparse.offsets))
        return scores + np.bincount(rows, weights=products, minlength=len(scores))

    def row(self, candidate: int) -> Array:
        """(size,) all values of one candidate."""
        row = np.zeros(self.space.size)
        row[: self.space.dense_size] = self.dense[candidate]
        if self.sparse is not None:
            own = slice(self.sparse.offsets[candidate], self.sparse.offsets[candidate + 1])
            row[self.space.dense_size + self.sparse.columns[own]] = self.sparse.values[own]
        return row

    def best(self, scores: Array) -> Integers:
        """(n,) the candidate of each sentence that scores highest; on a tie the first in the list."""
        pairs = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return np.array([start + int(np.argmax(scores[start:end])) for start, end in pairs], dtype=np.int64)


class Collector:
    """Collects sentence after sentence into arrays."""

    def __init__(self) -> None:
        self._dense: tuple[tuple[str, int], ...] = ()
        self._columns: dict[str, int] = {}
        self._sentences: list[int] = []
        self._offsets = [0]
        self._rows: list[Array] = []
        self._sparse_offsets = [0]
        self._sparse_columns: list[int] = []
        self._sparse_values: list[float] = []

    def add(self, sentence_list: SentenceList) -> None:
        """Add the candidates of one more sentence."""
        if not self._sentences:
            self._dense = dense_features(sentence_list)
        space = FeatureSpace(self._dense)
        rows = [space.row(hypothesis) for hypothesis in sentence_list.hypotheses]
        self._rows.append(np.array(rows).reshape(len(rows), space.dense_size))
        self._sentences.append(sentence_list.sentence)
        self._offsets.append(self._offsets[-1] + len(rows))
        for hypothesis in sentence_list.hypotheses:
            for name, value in hypothesis.sparse.items():
                self._sparse_columns.append(self._columns.setdefault(name, len(self._columns)))
                self._sparse_values.append(value)
            self._sparse_offsets.append(len(self._sparse_columns))

    def candidates(self) -> Candidates:
        """Return what was collected."""
        sparse = None
        if self._columns:
            columns = np.array(self._sparse_columns, dtype=np.int64)
            sparse = Sparse(np.array(self._sparse_offsets), columns, np.array(self._sparse_values))
        return Candidates(
            FeatureSpace(self._dense, tuple(self._columns)),
            np.array(self._sentences),
            np.array(self._offsets),
            np.concatenate(self._rows),
            sparse,
        )


def collect(lists: Iterable[SentenceList]) -> Candidates:
    """Return all sentences as arrays."""
    collector = Collector()
    for sentence_list in lists:
        collector.add(sentence_list)
    return collector.candidates()


def dense_features(sentence_list: SentenceList) -> tuple[tuple[str, int], ...]:
    """(name, number of values) of the dense features of a list; its reader sees to it that all lines have the same."""
    return tuple((name, len(values)) for name, values in sentence_list.hypotheses[0].dense)
