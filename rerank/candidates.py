"""Candidates as arrays: the only thing that tuners see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

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

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each column, that of a feature with several values as often as it has values."""
        return (*(name for name, count in self.dense for _ in range(count)), *self.sparse)

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
        sparse: sparse values; in most lists there are none.
    """

    space: FeatureSpace
    sentences: Integers
    offsets: Integers
    dense: Array
    sparse: Sparse

    def scores(self, weights: Array) -> Array:
        """(N,) model score of every candidate under (size,) weights."""
        split = self.space.dense_size
        if not self.space.sparse:
            return self.dense @ weights[:split]
        products = self.sparse.values * weights[split:][self.sparse.columns]
        rows = np.repeat(np.arange(len(self.dense)), np.diff(self.sparse.offsets))
        scores: Array = self.dense @ weights[:split] + np.bincount(rows, weights=products, minlength=len(self.dense))
        return scores

    def matrix(self) -> csr_matrix:
        """(N, size) all features."""
        shape = (len(self.dense), len(self.space.sparse))
        sparse = csr_matrix((self.sparse.values, self.sparse.columns, self.sparse.offsets), shape=shape)
        return hstack([csr_matrix(self.dense), sparse], format="csr")

    def sums(self, shares: Array) -> Array:
        """(size,) features of all candidates, summed with (N,) shares."""
        by_value = np.repeat(shares, np.diff(self.sparse.offsets)) * self.sparse.values
        sparse = np.bincount(self.sparse.columns, weights=by_value, minlength=len(self.space.sparse))
        return np.concatenate([shares @ self.dense, sparse])

    def of(self, sentences: Integers) -> "Candidates":
        """Return some of the sentences, by their place in the list, with all columns."""
        rows = self.rows_of(sentences)
        counts = np.diff(self.sparse.offsets)
        kept = np.concatenate([np.arange(self.sparse.offsets[row], self.sparse.offsets[row + 1]) for row in rows])
        kept = kept.astype(np.int64)
        sparse = Sparse(_offsets(counts[rows]), self.sparse.columns[kept], self.sparse.values[kept])
        sizes = np.diff(self.offsets)[sentences]
        return Candidates(self.space, self.sentences[sentences], _offsets(sizes), self.dense[rows], sparse)

    def rows_of(self, sentences: Integers) -> Integers:
        """Return the candidates of some sentences."""
        return np.concatenate([np.arange(self.offsets[place], self.offsets[place + 1]) for place in sentences])

    def best(self, scores: Array) -> Integers:
        """(n,) the candidate of each sentence that scores highest; on a tie the first in the list."""
        starts = self.offsets[:-1]
        highest = np.repeat(np.maximum.reduceat(scores, starts), np.diff(self.offsets))
        winners = np.flatnonzero(scores == highest)
        first: Integers = winners[np.searchsorted(winners, starts)]
        return first


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
        """Add the candidates of one more sentence of a list."""
        space = FeatureSpace(self._dense or dense_features(sentence_list))
        rows = [space.row(hypothesis) for hypothesis in sentence_list.hypotheses]
        sparse = [hypothesis.sparse for hypothesis in sentence_list.hypotheses]
        self.add_rows(sentence_list.sentence, space.dense, rows, sparse)

    def add_rows(
        self,
        sentence: int,
        dense: tuple[tuple[str, int], ...],
        rows: Sequence[Sequence[float]],
        sparse: Sequence[Mapping[str, float]],
    ) -> None:
        """Add the candidates of one more sentence: dense values in the order of `dense`, and sparse ones by name."""
        self._dense = self._dense or dense
        self._rows.append(np.array(rows, dtype=np.float64).reshape(len(rows), FeatureSpace(dense).dense_size))
        self._sentences.append(sentence)
        self._offsets.append(self._offsets[-1] + len(rows))
        for named in sparse:
            for name, value in named.items():
                self._sparse_columns.append(self._columns.setdefault(name, len(self._columns)))
                self._sparse_values.append(value)
            self._sparse_offsets.append(len(self._sparse_columns))

    def candidates(self) -> Candidates:
        """Return what was collected."""
        columns, values = (
            np.array(self._sparse_columns, dtype=np.int64),
            np.array(self._sparse_values, dtype=np.float64),
        )
        sparse = Sparse(np.array(self._sparse_offsets), columns, values)
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


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
