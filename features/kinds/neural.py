"""What trained models say of candidates."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Array
from features.feature import ModelFeature, Need, Reading, Sentence
from features.models.settings import check_values
from features.models.tables import ADDED
from features.reader import Reader
from features.request import models_and_values
from moses_io.errors import InputError, at
from moses_io.hypothesis import Hypothesis
from moses_io.merge import INDICATOR, first_indicator


class Neural(ModelFeature):
    """Values of a model, by default one: the sum of log p over the words of the model's target with `</s>`, in nats.

    A forward model gives p(hypothesis|source), a backward model p(source|hypothesis).

    Raises:
        InputError: an unknown value, one that the model cannot give, or `added` of a list that was not joined.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        (reader,) = readers
        (need,) = self.needs(argument)
        _, named = models_and_values(self._kind(), argument)
        self._names = named or need.values
        with at(f"{need.folders[0]}: "):
            check_values(need.values, reader.config.architecture)
        parts = [self._kind(), reader.signature, f"values:{','.join(named)}" if named else ""]
        self.signature = "|".join(part for part in (*parts, reader.precision) if part)

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return one need, of one model."""
        folders, names = models_and_values(cls._kind(), argument)
        read = dict.fromkeys("logprob" if name == ADDED else name for name in names or ("logprob",))
        return [Need(folders, tuple(read))]

    @classmethod
    def _kind(cls) -> str:
        return cls.__name__.lower()

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """(N, values)."""
        (reading,) = readings
        values = reading.values
        if ADDED in self._names:
            values = {**values, ADDED: np.where(_added(sentences), values["logprob"], 0.0)}  # (N,) each
        return np.stack([values[name] for name in self._names], axis=1)  # (N, values)


class Ensemble(Neural):
    """The same for several models: log of the mean of their distributions of the next word.

    The mean is that of the probabilities, word by word. Neither Luong et al. 2015 nor Cohn et al. 2016 say how they
    combine; the other way is one feature `neural` a model. Attention is that of the first model.

    Raises:
        InputError: a single model, or models that do not say the same words in the same order.
    """


def _added(sentences: Sequence[Sentence]) -> Array:
    """(N,) whether the first of the lists that were joined lacks a candidate; groups need not have whole sentences."""
    return np.array([_is_added(each, line) for each in sentences for line in each.lines], dtype=bool)  # (N,)


def _is_added(sentence: Sentence, line: Hypothesis) -> bool:
    own = first_indicator(line)
    if own is None:
        fault = f"no feature {INDICATOR}… of 0 or 1 here; it is for lists that were joined"
        raise InputError(f"{sentence.place(line)}: value '{ADDED}' of a model: {fault}")
    return own == 0
