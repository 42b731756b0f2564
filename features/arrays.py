"""Array types."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
AttentionRows = NDArray[np.float32]
"""Attention weights of a sentence pair: rows are target positions, columns are source positions.

Rows from scoring have the shape (J+1, I+2): rows for the J target words and `</s>`, columns for `<s>`, the I source
words and `</s>`. Soft alignments have the shape (J, I), for words only. Source and target are those of the network: the
target of a backward model is the source sentence.
"""


def row_products(matrix: Array, vector: Array) -> Array:
    """Return the (N,) products of the rows of an (N, D) matrix with a (D,) vector. Equal rows have equal products.

    `matrix @ vector` has no such guarantee: BLAS may add up the last rows in another order, which would break ties by
    rounding.
    """
    products: Array = np.einsum("nd,d->n", matrix, vector)  # (N,)
    return products
