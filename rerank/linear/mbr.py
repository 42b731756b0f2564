"""Minimum Bayes risk decoding over a list (Kumar and Byrne 2004), with chrF as the gain."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from features.arrays import Array, row_products
from features.kinds.consensus import BETA, CHARACTER_ORDER
from rerank.linear.ranking import Ranking


def expected_chrf(ranking: Ranking, scale: float) -> Ranking:
    """Return a ranking by the expected sentence chrF, 0 … 100, against all candidates of the list.

    Args:
        ranking: candidates and their scores under the linear model.
        scale: factor of the scores, whose softmax gives the probabilities of the candidates. With 0, all have equal
            probabilities.
    """
    texts = [hypothesis.text for hypothesis in ranking.candidates.hypotheses]
    weights = np.exp(scale * (ranking.scores - ranking.scores.max()))  # (N,)
    return Ranking(ranking.candidates, row_products(pairwise_chrf(texts), weights / weights.sum()))  # (N, N) · (N,)


def pairwise_chrf(texts: Sequence[str]) -> Array:
    """Return the chrF of each text with each text as the reference, (N, N), 0 … 100.

    The values are those of sacreBLEU's `sentence_chrf`.
    """
    precision = np.zeros((len(texts), len(texts)))  # (N, N)
    recall, orders = np.zeros_like(precision), np.zeros_like(precision)
    joined = ["".join(text.split()) for text in texts]
    for order in range(1, CHARACTER_ORDER + 1):
        matches = _matches(joined, order)  # (N, N)
        totals = np.maximum(0, np.array([len(text) - order + 1 for text in joined]))  # (N,)
        both = (totals[:, None] > 0) & (totals[None, :] > 0)  # (N, N)
        precision += np.divide(matches, totals[:, None], where=both, out=np.zeros_like(matches))
        recall += np.divide(matches, totals[None, :], where=both, out=np.zeros_like(matches))
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    denominator = BETA**2 * precision + recall
    values: Array = np.divide(
        (1 + BETA**2) * precision * recall, denominator, where=denominator > 0, out=np.zeros_like(denominator)
    )
    return 100 * values


def _matches(texts: Sequence[str], order: int) -> Array:
    """Return the number of common character n-grams of each pair of texts, (N, N).

    An n-gram that occurs k times is k different events, so that the product of two rows is the sum of the smaller
    counts.
    """
    events: dict[tuple[str, int], int] = {}
    rows, columns = [], []
    for row, text in enumerate(texts):
        for ngram, count in Counter(text[start : start + order] for start in range(len(text) - order + 1)).items():
            for occurrence in range(count):
                rows.append(row)
                columns.append(events.setdefault((ngram, occurrence), len(events)))
    matrix = scipy.sparse.csr_array(
        (np.ones(len(rows)), (rows, columns)), shape=(len(texts), max(1, len(events)))
    )  # (N, events)
    product: Array = (matrix @ matrix.T).toarray()  # (N, N)
    return product
