"""What estimates say of the sentences of a scored list and, with references, how well they fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array
from rerank.confidence.confidence import Confidence
from rerank.confidence.fit import Outcome
from rerank.linear.selection import Estimate, Ranking
from rerank.metrics.filters import Filters
from rerank.metrics.formula import DECIMALS
from rerank.metrics.metric import Metric


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


class Measuring:
    """Estimates the choices of one sentence after the other; references have gone through the filters already.

    Attributes:
        metric: name of what is expected.
    """

    def __init__(self, confidence: Confidence, references: Sequence[Sequence[str]], filters: Filters) -> None:
        self._confidence, self._references, self._filters = confidence, references, filters
        self._metric = Metric(confidence.metric)
        self.metric = self._metric.formula.name
        self._estimates: dict[int, Estimate] = {}
        self._rows: list[tuple[float, ...]] = []

    def add(self, ranking: Ranking) -> Estimate:
        """Add a sentence, and return the estimate of its choice; errors are those of `Confidence.predictors`."""
        confidence = self._confidence
        values = confidence.predictors(ranking)
        estimate = self._estimates[ranking.candidates.sentence] = confidence.estimate(values)
        if self._references:
            statistics = choice_and_before(ranking, self._metric, self._references, self._filters)  # (2, size)
            reached, before = (100 * np.round(self._metric.formula.smoothed(statistics), DECIMALS)).tolist()  # (2,)
            helped = np.nan if estimate.helped is None else estimate.helped
            row = (estimate.expected, helped, values.choice[confidence.alone], reached, reached - before)
            self._rows.append(row)
        return estimate

    def measured(self) -> Measured:
        """Return what is expected of the sentences that were added."""
        outcome = Outcome(*np.array(self._rows).T) if self._rows else None
        return Measured(self.metric, self._estimates, outcome)


def choice_and_before(ranking: Ranking, metric: Metric, references: Sequence[Sequence[str]], filters: Filters) -> Array:
    """(2, size) statistics of the choice, and of the decoder's; references have gone through the filters already."""
    candidates = ranking.candidates
    count = metric.counter([lines[candidates.sentence] for lines in references])
    texts = [ranking.best.text, candidates.moses_text]
    return np.array([count(filters(text)) for text in texts])  # (2, size)
