"""What trained models say of candidates, and what their attention agrees with: another model or Moses' alignment."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Array, AttentionRows
from features.feature import ModelFeature, Need, Reading, Sentence
from features.kinds.moses import LinkReader
from features.models.settings import check_rows, check_values
from features.models.tables import ADDED
from features.reader import Reader
from features.request import models_and_values
from moses_io.files.errors import InputError, at
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


class Agreement(ModelFeature):
    """Two values: tr(A_{s→t} A_{t→s}) of both directions' attention (Cohn et al. 2016, 3.4), and it over min(I, J).

    `</s>` counts as in training, in the trace and in I and J, so that the second value is 1 at most.

    Raises:
        InputError: not a forward and a backward model, or models that do not speak of words from left to right.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        for reader, direction in zip(readers, ("forward", "backward"), strict=True):
            _check(reader, direction)
        self.signature = "|".join(["agreement|lengths:with-end", *(_signature(reader) for reader in readers)])

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return the attention of both models."""
        folders = argument.split(",")
        if len(folders) != 2:
            raise InputError(f"feature 'agreement:{argument}': expected a forward and a backward model")
        return [Need((folder,), attention=True) for folder in folders]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """(N, 2)."""
        forward, backward = (reading.attention for reading in readings)
        rows = [_trace(*each) for each in zip(forward, backward, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)  # (N, 2)


class Links(ModelFeature):
    """One value: the attention that target words give to the source words that Moses aligned them with, summed.

    Raises:
        InputError: a backward model, one that does not speak of words from left to right, or a list without alignment.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        (reader,) = readers
        _check(reader, "forward")
        self.signature = f"links|{_signature(reader)}"
        self._reader = LinkReader()

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return the attention of the model."""
        return [Need((argument,), attention=True)]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """(N, 1)."""
        attention = iter(readings[0].attention)
        values = []
        for each in sentences:
            for hypothesis, line in zip(each.hypotheses, each.lines, strict=True):
                alignment = self._reader.links(each, hypothesis, line)
                if alignment is None:
                    hint = "decode with -print-alignment-info-in-n-best"
                    raise InputError(f"{each.place(line)}: feature 'links': no word alignment here; {hint}")
                rows = next(attention)
                values.append([sum(float(rows[target, source + 1]) for source, target in alignment)])
        return np.array(values, dtype=np.float64)


def _trace(forward: AttentionRows, backward: AttentionRows) -> tuple[float, float]:
    trace = float(np.vdot(forward[:, 1:], backward[:, 1:].T))  # (J, I) both, `</s>` counted
    return trace, trace / min(len(forward), len(backward))


def _check(reader: Reader, direction: str) -> None:
    """Refuse a model of the other direction, or one whose attention is not that of words from left to right."""
    config, folder = reader.config, reader.folders[0]
    if config.direction != direction:
        raise InputError(f"{folder}: expected a {direction} model, this is a {config.direction} one")
    with at(f"{folder}: "):
        check_rows(config.architecture, config.training, config.right_to_left)


def _signature(reader: Reader) -> str:
    return f"{reader.signature}|{reader.precision}" if reader.precision else reader.signature
