"""What the attention of models agrees with: that of the other direction, and Moses' word alignment."""

from collections.abc import Sequence

import numpy as np

from features.feature import Array, Candidates, Resources
from features.kinds.phrases import word_alignment
from features.models.scoring.alone import Pair, Rows
from features.models.settings import check_rows
from features.reader import Reader, find_reader
from moses_io.errors import InputError


class Agreement:
    """Two values: tr(A_{s→t} A_{t→s}) of both directions' attention (Cohn et al. 2016, 3.4), and it over min(I, J).

    Rows and columns of `</s>` count, as in training. An empty side counts as one word.

    Raises:
        InputError: not a forward and a backward model, or models that do not speak of words from left to right.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        folders = argument.split(",")
        if len(folders) != 2:
            raise InputError(f"feature 'agreement:{argument}': expected a forward and a backward model")
        wanted = zip(folders, ("forward", "backward"), strict=True)
        self._readers = [_reader(folder, direction, resources) for folder, direction in wanted]
        self.signature = "|".join(["agreement", *(_signature(reader) for reader in self._readers)])

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 2)."""
        pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        forward, backward = (reader(sentences).rows for reader in self._readers)
        rows = [_trace(*each) for each in zip(pairs, forward, backward, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)


class Links:
    """One value: the attention that target words give to the source words that Moses aligned them with, summed.

    Raises:
        InputError: a backward model, one that does not speak of words from left to right, or a list without alignment.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._reader = _reader(argument, "forward", resources)
        self.signature = f"links|{_signature(self._reader)}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        rows = iter(self._reader(sentences).rows)
        values = []
        for each in sentences:
            for hypothesis, line in zip(each.hypotheses, each.lines, strict=True):
                links = word_alignment(line, len(each.source), len(hypothesis))
                if links is None:
                    raise InputError(f"feature 'links', sentence {each.sentence}: the list has no word alignment")
                row = next(rows)
                values.append([sum(float(row[target, source + 1]) for source, target in links)])
        return np.array(values, dtype=np.float64)


def _trace(pair: Pair, forward: Rows, backward: Rows) -> tuple[float, float]:
    trace = float(np.vdot(forward[:, 1:], backward[:, 1:].T))
    return trace, trace / max(1, min(len(pair[0]), len(pair[1])))


def _reader(folder: str, direction: str, resources: Resources) -> Reader:
    reader = find_reader([folder], resources)
    config = reader.config
    if config.direction != direction:
        raise InputError(f"{folder}: expected a {direction} model, this is a {config.direction} one")
    try:
        check_rows(config.architecture, config.training, config.right_to_left)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    reader.ask(rows=True)
    return reader


def _signature(reader: Reader) -> str:
    return f"{reader.signature}|{reader.precision}" if reader.precision else reader.signature
