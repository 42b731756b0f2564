"""Features of trained models: log-probabilities, and the agreement of attention with another model or Moses."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Array, AttentionRows
from features.feature import ModelFeature, Need, Reading, Sentence
from features.kinds.moses import LinkReader
from features.models.settings import check_rows, check_values
from features.models.tables import ADDED, PER_WORD
from features.reader import Reader
from features.request import models_and_values
from moses_io.files.errors import InputError, at
from moses_io.hypothesis import Hypothesis
from moses_io.merge import INDICATOR, first_indicator


class Neural(ModelFeature):
    """Values of a model, by default the log-probability of the model's target, `</s>` included, in nats.

    A forward model scores p(hypothesis|source), a backward model p(source|hypothesis).

    Raises:
        InputError: an unknown value, one that the model cannot give, or `added` for an unmerged list.
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
        self._backward = reader.config.direction == "backward"

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return one need for one model."""
        folders, names = models_and_values(cls._kind(), argument)
        read = dict.fromkeys("logprob" if name in (ADDED, PER_WORD) else name for name in names or ("logprob",))
        return [Need(folders, tuple(read))]

    @classmethod
    def _kind(cls) -> str:
        return cls.__name__.lower()

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (N, values)."""
        (reading,) = readings
        values = reading.values
        if ADDED in self._names:
            values = {**values, ADDED: np.where(_added(sentences), values["logprob"], 0.0)}  # (N,) each
        if PER_WORD in self._names:
            values = {**values, PER_WORD: values["logprob"] / _predicted(sentences, self._backward)}  # (N,) each
        return np.stack([values[name] for name in self._names], axis=1)  # (N, values)


class Ensemble(Neural):
    """Values of several models: log of the mean of their distributions of the next word.

    Probabilities are averaged word by word. Luong et al. 2015 and Cohn et al. 2016 do not describe how they combine
    models. The alternative is one feature `neural` for each model. Attention is that of the first model.

    Raises:
        InputError: a single model, or models that differ in direction, order of words or target vocabulary.
    """


def _predicted(sentences: Sequence[Sentence], backward: bool) -> Array:
    """Return the number of words, with `</s>`, that a model predicts for each candidate, (N,)."""
    pairs = ((each.source, words) for each in sentences for words in each.hypotheses)
    return np.array([len(source if backward else words) + 1 for source, words in pairs], dtype=float)  # (N,)


def _added(sentences: Sequence[Sentence]) -> Array:
    """Return whether each candidate, (N,), is missing in the first of the merged lists."""
    return np.array([_is_added(each, line) for each in sentences for line in each.lines], dtype=bool)  # (N,)


def _is_added(sentence: Sentence, line: Hypothesis) -> bool:
    own = first_indicator(line)
    if own is None:
        fault = f"no feature {INDICATOR}… of 0 or 1 here. It is for merged lists"
        raise InputError(f"{sentence.place(line)}: value '{ADDED}' of a model: {fault}")
    return own == 0


class Agreement(ModelFeature):
    """Two values: the trace of both models' attention, and the trace divided by min(I, J).

    The trace is tr(A_{s→t} A_{t→s}) (Cohn et al. 2016, 3.4). `</s>` counts in the trace and in I and J, as in training,
    so the second value is at most 1.

    Raises:
        InputError: the models are not a forward and a backward model, or their rows of attention do not belong to words
            from left to right.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        for reader, direction in zip(readers, ("forward", "backward"), strict=True):
            _check(reader, direction)
        self.signature = "|".join(["agreement|lengths:with-end", *(_signature(reader) for reader in readers)])

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return the needs for the attention of both models."""
        folders = argument.split(",")
        if len(folders) != 2:
            raise InputError(f"feature 'agreement:{argument}': expected a forward and a backward model")
        return [Need((folder,), attention=True) for folder in folders]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (N, 2)."""
        forward, backward = (reading.attention for reading in readings)
        rows = [_trace(*each) for each in zip(forward, backward, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)  # (N, 2)


class Links(ModelFeature):
    """One value: the sum of the attention of target words on the source words that Moses aligned them with.

    Raises:
        InputError: a backward model, a model whose rows of attention do not belong to words from left to right, or a
            list without word alignment.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        (reader,) = readers
        _check(reader, "forward")
        self.signature = f"links|{_signature(reader)}"
        self._reader = LinkReader()

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return the need for the attention of the model."""
        return [Need((argument,), attention=True)]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (N, 1)."""
        attention = iter(readings[0].attention)
        values = []
        for each in sentences:
            for hypothesis, line in zip(each.hypotheses, each.lines, strict=True):
                alignment = self._reader.links(each, hypothesis, line)
                if alignment is None:
                    hint = "Decode with -print-alignment-info-in-n-best"
                    raise InputError(f"{each.place(line)}: feature 'links': no word alignment here. {hint}")
                rows = next(attention)
                # Column 0 of the rows is `<s>`.
                values.append([sum(float(rows[target, source + 1]) for source, target in alignment)])
        return np.array(values, dtype=np.float64)


def _trace(forward: AttentionRows, backward: AttentionRows) -> tuple[float, float]:
    trace = float(np.vdot(forward[:, 1:], backward[:, 1:].T))  # (J, I) both, with `</s>`
    return trace, trace / min(len(forward), len(backward))


def _check(reader: Reader, direction: str) -> None:
    """Raise `InputError` for a model of the wrong direction, or with rows of attention of other units than words."""
    config, folder = reader.config, reader.folders[0]
    if config.direction != direction:
        raise InputError(f"{folder}: expected a {direction} model, this is a {config.direction} one")
    with at(f"{folder}: "):
        check_rows(config.architecture, config.training, config.right_to_left)


def _signature(reader: Reader) -> str:
    return f"{reader.signature}|{reader.precision}" if reader.precision else reader.signature
