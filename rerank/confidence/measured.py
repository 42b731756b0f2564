"""What estimates say of the sentences of a scored list and, with references, how well they fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moses_io.nbest import read_nbest
from moses_io.weights import Weights
from rerank.confidence.confidence import Confidence
from rerank.confidence.fit import Fit, Outcome
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.selection import Estimate, LinearModel, Ranking


@dataclass(frozen=True)
class Measured:
    """Estimates by the ids of the sentences, and how well they fit, None without references."""

    estimates: dict[int, Estimate]
    fit: Fit | None


def measure(
    confidence: Confidence, nbest: str, weights: Weights, references: Sequence[Sequence[str]], filters: Filters
) -> Measured:
    """Estimate the choices of weights from a scored list; references have gone through the filters already."""
    model, metric = LinearModel(weights, "the weights"), Metric(confidence.metric)
    estimates: dict[int, Estimate] = {}
    rows = []
    for candidates in read_nbest(nbest):
        ranking = Ranking(candidates, model.scores(candidates))
        values = confidence.predictors(ranking)
        estimate = estimates[candidates.sentence] = confidence.estimate(values)
        if references:
            count = metric.counter([lines[candidates.sentence] for lines in references])
            texts = [ranking.best.text, candidates.hypotheses[candidates.decoded].text]
            statistics = np.array([count(filters(text)) for text in texts])  # (2, size)
            reached, before = (100 * metric.formula.smoothed(statistics)).tolist()  # (2,)
            helped = np.nan if estimate.helped is None else estimate.helped
            rows.append((estimate.expected, helped, values.choice[confidence.alone], reached, reached - before))
    return Measured(estimates, Outcome(*np.array(rows).T).fit() if rows else None)
