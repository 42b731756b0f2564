"""Conversion of n-best lists to arrays."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from features.arrays import Array
from moses_io.nbest import SentenceList
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse

Dense = tuple[tuple[str, int], ...]
"""(name, number of values) of the dense features, in list order."""


class Collector:
    """Builder of `Candidates` from one sentence after the other."""

    def __init__(self) -> None:
        self._dense: Dense = ()
        self._columns: dict[str, int] = {}
        self._sentences: list[int] = []
        self._offsets = [0]
        self._rows: list[Array] = []
        self._sparse_offsets = [0]
        self._sparse_columns: list[int] = []
        self._sparse_values: list[float] = []

    def add(self, sentence_list: SentenceList) -> None:
        """Add the candidates of a sentence. Dense features are in the order of the first sentence."""
        dense = self._dense or dense_features(sentence_list)
        values = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
        rows = [[value for name, _ in dense for value in by_name[name]] for by_name in values]
        self.add_rows(sentence_list.sentence, dense, rows, [each.sparse for each in sentence_list.hypotheses])

    def add_rows(
        self, sentence: int, dense: Dense, rows: Sequence[Sequence[float]], sparse: Sequence[Mapping[str, float]]
    ) -> None:
        """Add the candidates of a sentence as values.

        Args:
            sentence: id.
            dense: the dense features.
            rows: dense values of each candidate, in the order of `dense`.
            sparse: sparse values of each candidate, by name.
        """
        self._dense = self._dense or dense
        size = FeatureSpace(dense).dense_size
        self._rows.append(np.array(rows, dtype=np.float64).reshape(len(rows), size))  # (rows, D)
        self._sentences.append(sentence)
        self._offsets.append(self._offsets[-1] + len(rows))
        for named in sparse:
            for name, value in named.items():
                self._sparse_columns.append(self._columns.setdefault(name, len(self._columns)))
                self._sparse_values.append(value)
            self._sparse_offsets.append(len(self._sparse_columns))

    def candidates(self) -> Candidates:
        """Return all candidates that were added."""
        sparse = Sparse(
            offsets=np.array(self._sparse_offsets),
            columns=np.array(self._sparse_columns, dtype=np.int64),
            values=np.array(self._sparse_values, dtype=np.float64),
        )
        return Candidates(
            FeatureSpace(self._dense, tuple(self._columns)),
            sentences=np.array(self._sentences),
            offsets=np.array(self._offsets),
            dense=np.concatenate(self._rows),  # (N, D)
            sparse=sparse,
        )


def collect(lists: Iterable[SentenceList]) -> Candidates:
    """Return the candidates of all sentences as arrays."""
    collector = Collector()
    for sentence_list in lists:
        collector.add(sentence_list)
    return collector.candidates()


def dense_features(sentence_list: SentenceList) -> Dense:
    """Return the dense features of a list, read from its first line. The list reader checks that no line differs."""
    return tuple((name, len(values)) for name, values in sentence_list.hypotheses[0].dense)
