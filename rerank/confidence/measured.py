"""What estimates say of the sentences of a scored list and, with references, how well they fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from features.progress import with_bar
from moses_io.nbest import read_nbest
from moses_io.weights import Weights
from rerank.confidence.confidence import Confidence
from rerank.confidence.fit import Outcome
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.selection import Estimate, LinearModel, Ranking


@dataclass(frozen=True)
class Measured:
    """What is expected of sentences.

    Attributes:
        metric: name of what is expected.
        estimates: by the ids of the sentences.
        outcome: and what came out, None without references.
    """

    metric: str
    estimates: Mapping[int, Estimate]
    outcome: Outcome | None = None


def measure(
    confidence: Confidence, nbest: str, weights: Weights, references: Sequence[Sequence[str]], filters: Filters
) -> Measured:
    """Estimate the choices of weights from a scored list; references have gone through the filters already."""
    model, metric = LinearModel(weights, "the weights"), Metric(confidence.metric)
    estimates: dict[int, Estimate] = {}
    rows = []
    for candidates in with_bar("see estimates", read_nbest(nbest)):
        ranking = Ranking(candidates, model.scores(candidates))
        values = confidence.predictors(ranking)
        estimate = estimates[candidates.sentence] = confidence.estimate(values)
        if references:
            statistics = choice_and_before(ranking, metric, references, filters)  # (2, size)
            reached, before = (100 * metric.formula.smoothed(statistics)).tolist()  # (2,)
            helped = np.nan if estimate.helped is None else estimate.helped
            rows.append((estimate.expected, helped, values.choice[confidence.alone], reached, reached - before))
    return Measured(metric.formula.name, estimates, Outcome(*np.array(rows).T) if rows else None)


def choice_and_before(ranking: Ranking, metric: Metric, references: Sequence[Sequence[str]], filters: Filters) -> Array:
    """(2, size) statistics of the choice, and of Moses' own; references have gone through the filters already."""
    candidates = ranking.candidates
    count = metric.counter([lines[candidates.sentence] for lines in references])
    texts = [ranking.best.text, candidates.hypotheses[candidates.decoded].text]
    return np.array([count(filters(text)) for text in texts])  # (2, size)
