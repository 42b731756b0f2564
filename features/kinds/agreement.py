"""What the attention of models agrees with: that of the other direction, and Moses' word alignment."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Array, AttentionRows
from features.feature import ModelFeature, Need, Reading, Sentence
from features.kinds.moses import LinkReader
from features.models.settings import check_rows
from features.reader import Reader
from moses_io.errors import InputError, at


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
