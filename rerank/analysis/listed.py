"""A scored list, read once, as the arrays that analyses of lists look at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Array, Integers
from features.progress import with_bar
from moses_io.nbest import SentenceList, read_nbest
from moses_io.weights import Weights
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.selection import LinearModel


@dataclass(frozen=True)
class Listed:
    """The N candidates of the n sentences of a list, in the order of the list.

    Attributes:
        sentences: (n,) ids.
        offsets: (n+1,) sentence k has the candidates offsets[k] … offsets[k+1]-1.
        scores: (N,) of the linear model.
        margins: (n,) see `margin`.
        statistics: (N, 9) of BLEU; None without references.
        missing: (9,) those of the sentences that are not in the list, whose lines are empty, summed.
    """

    sentences: Integers
    offsets: Integers
    scores: Array
    margins: Array
    statistics: Array | None
    missing: Array


def read_listed(nbest: str, weights: Weights, references: Sequence[Sequence[str]], filters: Filters) -> Listed:
    """Read a scored list; references have gone through the filters already.

    Raises:
        InputError: the list cannot be read, or does not fit the weights.
    """
    model, bleu = LinearModel(weights, "the weights"), Metric("bleu")
    counters = [bleu.counter(answers) for answers in zip(*references, strict=True)]
    sentences, sizes, scores, margins, rows = [], [], [], [], []
    for sentence_list in with_bar("analyse", read_nbest(nbest), len(counters) or None):
        sentences.append(sentence_list.sentence)
        sizes.append(len(sentence_list.hypotheses))
        scores.append(model.scores(sentence_list))
        margins.append(margin(sentence_list))
        if references:
            count = counters[sentence_list.sentence]
            rows += [count(filters(hypothesis.text)) for hypothesis in sentence_list.hypotheses]
    empty = [counters[sentence]("") for sentence in set(range(len(counters))) - set(sentences)]
    return Listed(
        sentences=np.array(sentences),
        offsets=np.cumsum([0, *sizes]),
        scores=np.concatenate(scores),
        margins=np.array(margins),
        statistics=np.array(rows, dtype=np.float64) if references else None,
        missing=np.array(empty, dtype=np.float64).reshape(-1, bleu.formula.size).sum(axis=0),
    )


def margin(sentence_list: SentenceList) -> float:
    """Return by how much the highest total of a sentence is above the highest one of another text.

    It is infinite where there is no other text, and nan where the list has no totals.
    """
    first = sentence_list.hypotheses[sentence_list.decoded]
    others = [each.total for each in sentence_list.hypotheses if each.fields[1] != first.fields[1]]
    if first.total is None:
        return math.nan
    return first.total - max((total for total in others if total is not None), default=-math.inf)
