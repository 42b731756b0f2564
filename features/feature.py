"""Interfaces of features, and the types that they exchange.

A feature maps sentences with their candidates to values: natural logs or counts. Higher is better, except
for counts of unknown words and the entropy of attention.
Log-probabilities are sums over the tokens, not divided by the length.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from features.arrays import Array, AttentionRows
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import name_of
from moses_io.hypothesis import Hypothesis

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Sentence:
    """A source sentence and its candidates.

    Attributes:
        sentence: id of the sentence in the list.
        source: tokens of the source.
        hypotheses: tokens of each candidate.
        lines: parsed n-best line of each candidate. Required by features that read more than the text, else optional.
        path: path of the n-best list.
        counts_bos_eos: whether the word alignments of the list count `<s>` and `</s>`. It is decided from the lines up
            to this sentence (`LinkNumbering`), and None if they do not decide it.
    """

    sentence: int
    source: tuple[str, ...]
    hypotheses: tuple[tuple[str, ...], ...]
    lines: tuple[Hypothesis, ...] = ()
    path: str = ""
    counts_bos_eos: bool | None = None

    def place(self, line: Hypothesis) -> str:
        """Return `PATH:LINE` of one of the lines, for messages."""
        return f"{name_of(self.path)}:{line.number}"


def check_device(name: object) -> None:
    """Raise `InputError` if the name is none of `DEVICES`. Does not check whether the device is available."""
    if not isinstance(name, str) or name not in DEVICES:
        raise InputError(f"device {shown(name)}: expected {', '.join(DEVICES)}")


@dataclass(frozen=True)
class Resources:
    """Settings and paths that features are created with.

    Attributes:
        device: `auto`, `cpu` or `cuda`.
        precision: precision of the matrix products of models, `fp32` or `bf16`.
        cache: folder with cached values of models, or empty for no cache.
        folder: folder in which commands run, and base folder of relative paths in the argument of a user's class
            (default: the working folder).

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
    """A feature that scores sentences independently of each other.

    It is created from its argument and `Resources`.
    """

    signature: str
    """Settings and content digests that determine the values, without paths."""

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (candidates of all sentences, values), in the order of the list."""


class CandidateFeature(ABC):
    """A `Feature` whose values depend only on the tokens of the source and of one candidate."""

    signature: str

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, values)."""
        rows = [self.row(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        return np.array(rows, dtype=np.float64)

    @abstractmethod
    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> Sequence[float]:
        """Return the values of one candidate."""


class CheckedFeature(CandidateFeature):
    """A `CandidateFeature` that also checks whether its table or corpus matches the list."""

    @abstractmethod
    def end(self) -> None:
        """Warn if the table or corpus does not match the list. Called after the last sentence."""


class ListFeature(ABC):
    """A feature that scores the sentences of one list in order and keeps state between calls."""

    signature: str

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values of the next sentences of the list, (candidates of all sentences, values)."""

    @abstractmethod
    def end(self) -> None:
        """Check that the list is complete. Called after the last sentence.

        Raises:
            InputError: candidates are missing.
        """


class Need(NamedTuple):
    """Values and attention that a feature reads from a model, or from several models whose distributions are averaged.

    Attributes:
        folders: folders of the models.
        values: names of values, keys of `features.models.tables.VALUES`.
        attention: whether the rows of attention are needed.
        reader: `module:class` of the `ModelReader` of these models.
    """

    folders: tuple[str, ...]
    values: tuple[str, ...] = ()
    attention: bool = False
    reader: str = "features.reader:Reader"

    @property
    def models(self) -> tuple[str, tuple[str, ...]]:
        """Reader and folders, which identify the models."""
        return self.reader, self.folders


class Steps(NamedTuple):
    """Decoder steps that scoring took.

    Attributes:
        computed: steps over prefix trees.
        separate: steps that scoring each candidate separately would take.
    """

    computed: int = 0
    separate: int = 0

    def plus(self, other: "Steps") -> "Steps":
        """Return the sum with other steps."""
        return Steps(computed=self.computed + other.computed, separate=self.separate + other.separate)


class Reading(NamedTuple):
    """Output of models for N candidates.

    Attributes:
        values: (N,) array of each value, by name.
        attention: rows of attention of each candidate, or empty if not requested.
        steps: decoder steps that were taken.
    """

    values: dict[str, Array]
    attention: list[AttentionRows]
    steps: Steps = Steps()


class ModelReader(Protocol):
    """Models that score sentences.

    It is created from the folders of a `Need` and `Resources`.

    Attributes:
        group: maximum number of candidates in a group of several sentences.
        part: number of candidates after which progress is shown, 0 for whole batches.
        signature: settings and content that determine the values.
    """

    group: int
    part: int
    signature: str

    def read(self, sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False) -> Reading:
        """Return the named values of a group of sentences, and the rows of attention if requested."""

    def score_separately(self, sentence: Sentence, names: Sequence[str], attention: bool = False) -> Reading:
        """Return the values of a sentence, with each candidate scored separately."""


class ModelFeature(ABC):
    """A feature computed from the output of models.

    It is created from its argument and one reader for each need, in the order of `needs`. Models read a list once for
    all features, and each feature gets the readings. A call may contain only some sentences, and only some candidates
    of a sentence. Unless `whole_lists` is true, a value must not depend on other candidates.

    Attributes:
        signature: settings and content that determine the values.
        whole_lists: whether a value may depend on all candidates of its sentence. They are then in the same call.
    """

    signature: str
    whole_lists: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, argument: str, readers: Sequence[Any]) -> None:
        """Create the feature. `readers` has one object for each need, of the class that `Need.reader` names."""

    @classmethod
    @abstractmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return the models, values and attention that a feature with this argument needs."""

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (candidates of all sentences, values), in the order of the list.

        Args:
            sentences: sentences of one group.
            readings: one reading for each need.
        """
