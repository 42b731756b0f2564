"""What a feature is.

A feature looks at sentences with their candidates and returns numbers: natural logs and counts, higher is better;
log-probabilities are summed over the tokens and not divided by their number.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from features.arrays import Array, AttentionRows
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import name_of
from moses_io.hypothesis import Hypothesis

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Sentence:
    """A source sentence by its id and tokens, and the tokens of its candidates.

    Attributes:
        sentence: id.
        source: tokens.
        hypotheses: tokens of each candidate.
        lines: those of the list, for features of more than the text; optional for others.
        path: of the list.
        counts_marks: whether the word alignments of the list count `<s>` and `</s>`, as far as its lines up to this
            sentence decide it (`LinkNumbering`).
    """

    sentence: int
    source: tuple[str, ...]
    hypotheses: tuple[tuple[str, ...], ...]
    lines: tuple[Hypothesis, ...] = ()
    path: str = ""
    counts_marks: bool | None = None

    def place(self, line: Hypothesis) -> str:
        """File and number of one of the lines, for messages."""
        return f"{name_of(self.path)}:{line.number}"


def check_device(name: object) -> None:
    """Raise `InputError` if there is no device of that name, whether it is there or not."""
    if not isinstance(name, str) or name not in DEVICES:
        raise InputError(f"device {shown(name)}: expected {', '.join(DEVICES)}")


@dataclass(frozen=True)
class Resources:
    """What a feature may use.

    Attributes:
        device: `auto`, `cpu` or `cuda`.
        precision: of the products of models, `fp32` or `bf16`.
        cache: folder of the values that models gave before; empty for none.
        folder: base folder of relative paths in the argument; default: the working folder.

    Raises:
        InputError: an unknown device or precision.
    """

    device: str = "auto"
    precision: str = "fp32"
    cache: str = ""
    folder: str = ""

    def __post_init__(self) -> None:
        check_device(self.device)
        if not isinstance(self.precision, str) or self.precision not in PRECISIONS:
            raise InputError(f"precision {shown(self.precision)}: expected {', '.join(PRECISIONS)}")


class Feature(Protocol):
    """A function of sentences and their candidates; made from its argument and `Resources`."""

    signature: str
    """What it was made with: settings and content, not paths."""

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(candidates of all sentences, values) in the order of the list."""


class CandidateFeature(ABC):
    """A `Feature` of the words of a source and of one candidate, whatever the others are."""

    signature: str

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(N, values)."""
        rows = [self.row(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        return np.array(rows, dtype=np.float64)

    @abstractmethod
    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> Sequence[float]:
        """Return the values of a candidate."""


class CheckedFeature(CandidateFeature):
    """A feature of a candidate that also checks whether what it has read, such as a table, fits a list."""

    @abstractmethod
    def end(self) -> None:
        """Warn, after the last sentence, if the table or corpus does not match the list."""


class ListFeature(ABC):
    """A feature that follows one list from its first candidate to its last, in order."""

    signature: str

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """(candidates of all sentences, values), of the next sentences of the list."""

    @abstractmethod
    def end(self) -> None:
        """Hear that the list ends here; an `InputError` if it should not."""


class Need(NamedTuple):
    """What a feature needs of a model, or of several as the mean of their distributions.

    Attributes:
        folders: of the models.
        values: names of rows of `features.models.tables.VALUES`.
        attention: whether the rows of attention are needed, too.
    """

    folders: tuple[str, ...]
    values: tuple[str, ...] = ()
    attention: bool = False


class Steps(NamedTuple):
    """Steps that decoders took over prefix trees, and those of all candidates one by one."""

    taken: int = 0
    alone: int = 0

    def plus(self, other: "Steps") -> "Steps":
        """Add both."""
        return Steps(taken=self.taken + other.taken, alone=self.alone + other.alone)


class Reading(NamedTuple):
    """What was read of N candidates.

    Attributes:
        values: (N,) of each value by its name.
        attention: of each candidate, if it was needed.
        steps: what it took.
    """

    values: dict[str, Array]
    attention: list[AttentionRows]
    steps: Steps = Steps()


class ModelFeature(ABC):
    """A feature of what models say; made from its argument and the readers of what it needs, in that order.

    The one who holds the models reads a list once for all features, and hands the readings over: of a few sentences at
    a time, perhaps with a part of their candidates only, so that a value may depend on its own candidate alone.
    """

    signature: str

    @abstractmethod
    def __init__(self, argument: str, readers: Sequence[Any]) -> None:
        """Make the feature; `readers` are of `features.reader`."""

    @classmethod
    @abstractmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return what a feature of this argument needs of which models."""

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """(candidates of all sentences, values) in the order of the list; a reading for each need."""
