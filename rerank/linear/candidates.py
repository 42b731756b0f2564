"""Candidates as arrays: the only thing that tuners see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack

from features.arrays import Array, Integers
from moses_io.files.errors import Fault, counted, shown


@dataclass(frozen=True)
class FeatureSpace:
    """The order in which features stand in vectors: dense ones (name, number of values), then names of sparse ones."""

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

    @property
    def columns_by_feature(self) -> dict[str, Integers]:
        """The columns of each dense feature by its name, and of all sparse ones together."""
        names = np.array([*self.columns[: self.dense_size], *["sparse features"] * len(self.sparse)])  # (size,)
        return {str(name): np.flatnonzero(names == name) for name in dict.fromkeys(names)}  # (columns,) each

    def vector(self, weights: Mapping[str, Sequence[float]]) -> Array:
        """(size,) the weights in this order, 0 for a feature without one.

        Raises:
            Fault: a feature has another number of weights than of values.
        """
        vector: list[float] = []
        for name, count in (*self.dense, *((name, 1) for name in self.sparse)):
            own = weights.get(name, (0.0,) * count)
            if len(own) != count:
                values, numbers = counted(count, "value"), counted(len(own), "weight")
                raise Fault(f"feature {shown(name)} has {values} in the list and {numbers}")
            vector.extend(own)
        return np.array(vector)

    def weights(self, vector: Array) -> dict[str, tuple[float, ...]]:
        """Return the weights by name; sparse ones that are 0 are left out."""
        weights, start = {}, 0
        for name, count in self.dense:
            weights[name] = tuple(vector[start : start + count].tolist())
            start += count
        sparse = zip(self.sparse, vector[start:].tolist(), strict=True)
        return weights | {name: (value,) for name, value in sparse if value}

    def normalized(self, vector: Array) -> Array:
        """Divide weights by the absolute sum of the dense ones, as Moses does; of all where there are no dense ones."""
        total = np.abs(vector[: self.dense_size] if self.dense_size else vector).sum()  # ()
        return vector / total if total else vector


class Sparse(NamedTuple):
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
        scores: Array = self.dense @ weights[:split]  # (N,)
        if self.space.sparse:
            products = self.sparse.values * weights[split:][self.sparse.columns]  # (sparse values,)
            rows = np.repeat(np.arange(len(self.dense)), np.diff(self.sparse.offsets))  # (sparse values,)
            scores = scores + np.bincount(rows, weights=products, minlength=len(self.dense))  # (N,)
        return scores

    def spread_of(self, scores: Array) -> float:
        """Return the standard deviation of (N,) scores within sentences; 0 if constant there."""
        return float(spread(scores[:, None], self.offsets)[0])  # ()

    def matrix(self) -> csr_matrix:
        """(N, size) all features."""
        shape = (len(self.dense), len(self.space.sparse))
        sparse = csr_matrix((self.sparse.values, self.sparse.columns, self.sparse.offsets), shape=shape)
        return hstack([csr_matrix(self.dense), sparse], format="csr")  # (N, size)

    def sums(self, shares: Array) -> Array:
        """(size,) features of all candidates, summed with (N,) shares."""
        by_value = np.repeat(shares, np.diff(self.sparse.offsets)) * self.sparse.values  # (sparse values,)
        sparse = np.bincount(self.sparse.columns, weights=by_value, minlength=len(self.space.sparse))  # (sparse,)
        return np.concatenate([shares @ self.dense, sparse])  # (size,)

    def of(self, sentences: Integers) -> "Candidates":
        """Return some of the sentences, by their place in the list, with all columns."""
        offsets = _offsets(np.diff(self.offsets)[sentences])  # (sentences + 1,)
        return self.rows(self.rows_of(sentences), self.sentences[sentences], offsets)

    def rows(self, rows: Integers, sentences: Integers, offsets: Integers) -> "Candidates":
        """Return some of the candidates, with all columns, as those of sentences with these ids and offsets."""
        places = _ranges(self.sparse.offsets, rows)
        sparse = Sparse(
            offsets=_offsets(np.diff(self.sparse.offsets)[rows]),  # (rows + 1,)
            columns=self.sparse.columns[places],  # (places,)
            values=self.sparse.values[places],  # (places,)
        )
        return Candidates(self.space, sentences=sentences, offsets=offsets, dense=self.dense[rows], sparse=sparse)

    def rows_of(self, sentences: Integers) -> Integers:
        """Return the candidates of some sentences."""
        return _ranges(self.offsets, sentences)

    def best(self, scores: Array) -> Integers:
        """(n,) the candidate of each sentence that scores highest; on a tie the first in the list."""
        return highest(scores, self.offsets)


def highest(values: Array, offsets: Integers) -> Integers:
    """(n,) the row of each sentence with the highest of (N,) values; on a tie the first one."""
    starts = offsets[:-1]
    most = np.repeat(np.maximum.reduceat(values, starts), np.diff(offsets))  # (N,)
    winners = np.flatnonzero(values == most)  # (winners,)
    return winners[np.searchsorted(winners, starts)]  # (n,)


def spread(values: Array, offsets: Integers) -> Array:
    """(D,) standard deviation of each of (N, D) values within sentences, pooled; 0 if constant there."""
    counts, starts = np.diff(offsets), offsets[:-1]  # (n,), (n,)
    varies = (np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)).any(axis=0)  # (D,)
    means = np.add.reduceat(values, starts) / counts[:, None]  # (n, D)
    within = values - np.repeat(means, counts, axis=0)  # (N, D)
    deviation: Array = np.sqrt((within**2).mean(axis=0)) * varies  # (D,)
    return deviation


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # (sizes + 1,)


def _ranges(offsets: Integers, places: Integers) -> Integers:
    """Return offsets[p] … offsets[p+1]-1 of one place p after the other."""
    sizes = np.diff(offsets)[places]  # (places,)
    starts = np.repeat(offsets[places] - np.cumsum(sizes) + sizes, sizes)  # (all of them,)
    return starts + np.arange(len(starts))
