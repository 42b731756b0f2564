"""Candidates as arrays: the only input of the tuners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack

from features.arrays import Array, Integers, row_products
from features.ragged import concatenated, ends_of
from moses_io.files.errors import Fault, counted, shown


@dataclass(frozen=True)
class FeatureSpace:
    """Order of the features in a vector: the dense ones, then the sparse ones.

    Attributes:
        dense: (name, number of values) of each dense feature.
        sparse: names of the sparse features, which have one value each.
    """

    dense: tuple[tuple[str, int], ...]
    sparse: tuple[str, ...] = ()

    @property
    def dense_size(self) -> int:
        """Number of dense columns."""
        return sum(count for _, count in self.dense)

    @property
    def size(self) -> int:
        """Number of all columns."""
        return self.dense_size + len(self.sparse)

    @property
    def columns(self) -> tuple[str, ...]:
        """Feature name of each column. The name of a feature with several values is repeated."""
        return (*(name for name, count in self.dense for _ in range(count)), *self.sparse)

    @property
    def columns_by_feature(self) -> dict[str, Integers]:
        """Column indices of each dense feature by its name. All sparse features share the key "sparse features"."""
        names = np.array([*self.columns[: self.dense_size], *["sparse features"] * len(self.sparse)])  # (size,)
        return {str(name): np.flatnonzero(names == name) for name in dict.fromkeys(names)}  # (columns,) each

    def vector(self, weights: Mapping[str, Sequence[float]]) -> Array:
        """Return the (size,) weights in the order of the columns, 0 for a feature that has no weight.

        Raises:
            Fault: the number of weights of a feature differs from its number of values.
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
        """Return the weights by feature name, without sparse weights that are 0."""
        weights, start = {}, 0
        for name, count in self.dense:
            weights[name] = tuple(vector[start : start + count].tolist())
            start += count
        sparse = zip(self.sparse, vector[start:].tolist(), strict=True)
        return weights | {name: (value,) for name, value in sparse if value}

    def normalized(self, vector: Array) -> Array:
        """Divide weights by the sum of the absolute dense weights, as Moses does.

        Without dense features, divide by the sum of all absolute weights. If the sum is 0, nothing changes.
        """
        total = np.abs(vector[: self.dense_size] if self.dense_size else vector).sum()  # ()
        return vector / total if total else vector


class Sparse(NamedTuple):
    """Sparse features by row, as in a CSR matrix.

    Candidate n has values[offsets[n]:offsets[n+1]] in columns[offsets[n]:offsets[n+1]]. Columns count from 0 at the
    first sparse feature.
    """

    offsets: Integers
    columns: Integers
    values: Array


@dataclass(frozen=True)
class Candidates:
    """The candidates of all sentences, in the order of the list.

    Attributes:
        space: order of the features.
        sentences: (n,) sentence ids.
        offsets: (n+1,) sentence k has the rows offsets[k] … offsets[k+1]-1.
        dense: (N, D) dense values.
        sparse: sparse values. Most lists have no sparse features.
    """

    space: FeatureSpace
    sentences: Integers
    offsets: Integers
    dense: Array
    sparse: Sparse

    def scores(self, weights: Array) -> Array:
        """Return the (N,) model scores of all candidates under (size,) weights."""
        split = self.space.dense_size
        scores = row_products(self.dense, weights[:split])  # (N,)
        if self.space.sparse:
            products = self.sparse.values * weights[split:][self.sparse.columns]  # (sparse values,)
            rows = np.repeat(np.arange(len(self.dense)), np.diff(self.sparse.offsets))  # (sparse values,)
            scores = scores + np.bincount(rows, weights=products, minlength=len(self.dense))  # (N,)
        return scores

    def spread_of(self, scores: Array) -> float:
        """Return the pooled standard deviation of (N,) scores within sentences, 0 if they are constant there."""
        return float(spread(scores[:, None], self.offsets)[0])  # ()

    def matrix(self) -> csr_matrix:
        """Return the (N, size) sparse matrix of all features."""
        shape = (len(self.dense), len(self.space.sparse))
        sparse = csr_matrix((self.sparse.values, self.sparse.columns, self.sparse.offsets), shape=shape)
        return hstack([csr_matrix(self.dense), sparse], format="csr")  # (N, size)

    def sums(self, coefficients: Array) -> Array:
        """Return the (size,) sum of the feature vectors of all candidates, weighted by (N,) `coefficients`."""
        by_value = np.repeat(coefficients, np.diff(self.sparse.offsets)) * self.sparse.values  # (sparse values,)
        sparse = np.bincount(self.sparse.columns, weights=by_value, minlength=len(self.space.sparse))  # (sparse,)
        return np.concatenate([coefficients @ self.dense, sparse])  # (size,)

    def subset(self, sentences: Integers) -> "Candidates":
        """Return the candidates of some sentences, given by their indices in the list. All columns are kept."""
        offsets = ends_of(np.diff(self.offsets)[sentences])  # (sentences + 1,)
        return self.rows(self.rows_of(sentences), self.sentences[sentences], offsets)

    def rows(self, rows: Integers, sentences: Integers, offsets: Integers) -> "Candidates":
        """Return some of the candidates. All columns are kept.

        Args:
            rows: indices of the candidates.
            sentences: (n,) ids of the sentences that they belong to.
            offsets: (n+1,) where the candidates of each sentence start in `rows`.
        """
        indices = _ranges(self.sparse.offsets, rows)
        sparse = Sparse(
            offsets=ends_of(np.diff(self.sparse.offsets)[rows]),  # (rows + 1,)
            columns=self.sparse.columns[indices],  # (values,)
            values=self.sparse.values[indices],  # (values,)
        )
        return Candidates(self.space, sentences=sentences, offsets=offsets, dense=self.dense[rows], sparse=sparse)

    def rows_of(self, sentences: Integers) -> Integers:
        """Return the row indices of the candidates of some sentences, given by their indices in the list."""
        return _ranges(self.offsets, sentences)

    def best(self, scores: Array) -> Integers:
        """Return the (n,) row index of each sentence's candidate with the highest score. Ties go to the first."""
        return highest(scores, self.offsets)


def highest(values: Array, offsets: Integers) -> Integers:
    """Return the (n,) row index of the highest of (N,) values in each sentence. Ties go to the first row."""
    starts = offsets[:-1]
    maxima = np.repeat(np.maximum.reduceat(values, starts), np.diff(offsets))  # (N,)
    winners = np.flatnonzero(values == maxima)  # (winners,)
    # Winners are in row order, so the first one at or after the start of a sentence is its first winner.
    return winners[np.searchsorted(winners, starts)]  # (n,)


def spread(values: Array, offsets: Integers) -> Array:
    """Return the (D,) pooled standard deviation within sentences of (N, D) values. A column constant there gets 0."""
    counts, starts = np.diff(offsets), offsets[:-1]  # (n,), (n,)
    # Rounding of the mean can give a constant column a tiny deviation, so constant columns are found by comparison.
    varies = (np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)).any(axis=0)  # (D,)
    means = np.add.reduceat(values, starts) / counts[:, None]  # (n, D)
    within = values - np.repeat(means, counts, axis=0)  # (N, D)
    deviation: Array = np.sqrt((within**2).mean(axis=0)) * varies  # (D,)
    return deviation


def _ranges(offsets: Integers, indices: Integers) -> Integers:
    """Return the concatenated ranges offsets[p] … offsets[p+1]-1 for each p in `indices`."""
    return concatenated(offsets[indices], np.diff(offsets)[indices])
