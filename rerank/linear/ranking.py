"""Ranking of the candidates of one sentence at a time by a linear model with fixed weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from features.arrays import Array
from features.progress import log
from moses_io.files.errors import Fault, InputError, shown
from moses_io.hypothesis import Hypothesis, is_sparse
from moses_io.nbest import SentenceList
from moses_io.weights import WeightFile
from rerank.linear.candidates import FeatureSpace
from rerank.linear.collecting import collect, dense_features
from rerank.linear.weights import hint_for, unused_weights, weights_for

NAMED = 3
"""Maximum number of sparse features that a warning names."""


class LinearModel:
    """Linear model with fixed weights that scores the candidates of one sentence at a time.

    Args:
        content: the weights. Features of the list that it lacks have the weights that Moses uses for them, if any.
        path: path of the weights, for messages.
    """

    def __init__(self, content: WeightFile, path: str) -> None:
        self._content, self._path, self._checked = content, path, False
        self._weights = content.weights

    def scores(self, sentence_list: SentenceList) -> Array:
        """Return the (candidates,) model scores. A sparse feature without a weight has weight 0.

        Raises:
            InputError: a dense feature has no weight, its number of weights differs from its number of values, or a
                dense weight has no feature.
        """
        if not self._checked:
            self.check(sentence_list)
            self._warn(sentence_list)
            self._checked = True
        candidates = collect([sentence_list])
        try:
            return candidates.scores(candidates.space.vector(self._weights))
        except Fault as fault:
            raise InputError(f"{sentence_list.place}: {fault} in {self._path}") from None

    def check(self, sentence_list: SentenceList, pending: Sequence[str] = ()) -> None:
        """Match the weights with the dense features of a sentence.

        Args:
            sentence_list: the sentence.
            pending: names of features that are not in the list yet. Their weights are not reported as unused.

        Raises:
            InputError: a dense feature has no weight, or a dense weight has no feature.
        """
        space = FeatureSpace(dense_features(sentence_list))
        self._weights = weights_for(self._content, space)
        for name, _ in space.dense:
            if name not in self._weights:
                lacking = f"feature {shown(name)} has no weight in {self._path}{hint_for([name], space, self._weights)}"
                raise InputError(f"{sentence_list.place}: {lacking}")
        if unused := [name for name in unused_weights(space, self._weights) if name not in pending]:
            fault = f"{self._path} has weights for features that are not in the list: {', '.join(unused)}"
            raise InputError(f"{sentence_list.place}: {fault}. Was the list scored with `score`?")

    def _warn(self, sentence_list: SentenceList) -> None:
        """Warn if the list has sparse features and the weights have none. Single missing sparse weights are normal."""
        names = sorted({name for hypothesis in sentence_list.hypotheses for name in hypothesis.sparse})
        if names and not any(is_sparse(name, len(values)) for name, values in self._weights.items()):
            some = ", ".join(shown(name) for name in names[:NAMED]) + ", …" * (len(names) > NAMED)
            weightless = f"{self._path} has no weight for any sparse feature"
            log.warning(f"{weightless}. The sparse features of the list have weight 0: {some}")


class Estimate(NamedTuple):
    """Estimated quality of a chosen candidate.

    Attributes:
        expected: expected score of the sentence, 0 … 100.
        helped: probability, 0 … 1, that the chosen candidate is better than Moses' output. None if the two texts are
            equal or Moses' output is not among the candidates.
    """

    expected: float
    helped: float | None

    @property
    def line(self) -> bytes:
        """Output line with both values, separated by a tab."""
        return f"{self.expected:.2f}\t{'' if self.helped is None else f'{self.helped:.4f}'}\n".encode()


class Ranking(NamedTuple):
    """The candidates of a sentence with their model scores.

    Attributes:
        candidates: in list order.
        scores: (candidates,) scores of the linear model.
    """

    candidates: SentenceList
    scores: Array

    @property
    def best(self) -> Hypothesis:
        """The candidate with the highest score. Ties go to the first in the list."""
        return self.candidates.hypotheses[int(np.argmax(self.scores))]

    @property
    def order(self) -> list[int]:
        """Indices of the candidates in the list, best first. Ties stay in list order."""
        order: list[int] = np.argsort(-self.scores, kind="stable").tolist()  # (candidates,)
        return order


Estimator = Callable[[Ranking], Estimate]
"""Estimates the quality of the best candidate of a ranking."""


def rankings(lists: Iterable[SentenceList | bytes], model: LinearModel) -> Iterator[Ranking | bytes]:
    """Yield the ranking of each list as soon as it is read. Replacement lines are passed on."""
    for item in lists:
        yield item if isinstance(item, bytes) else Ranking(item, model.scores(item))
