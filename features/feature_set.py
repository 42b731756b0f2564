"""Features that score a list together: each model is opened once, and reads a group once for all that need it."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from features.arrays import Array, Integers
from features.cache import Journal
from features.feature import (
    CheckedFeature,
    Feature,
    ListFeature,
    ModelFeature,
    Need,
    Reading,
    Resources,
    Sentence,
    Steps,
)
from features.groups import groups
from features.models.tables import load
from features.request import FeatureRequest
from moses_io.files.errors import InputError

if TYPE_CHECKING:
    from features.reader import Reader


class Column(NamedTuple):
    """A label, and (N, values) of its feature."""

    label: str
    values: Array


class Scored(NamedTuple):
    """What all features say of a batch, and the steps that decoders took for it."""

    columns: list[Column]
    steps: Steps


class Scorer(Protocol):
    """What scores a list from its first sentence to its last.

    Attributes:
        signatures: of each feature, by its label.
        of_models: labels of those of models.
    """

    signatures: dict[str, str]
    of_models: frozenset[str]

    def score_all(self, batches: Iterable[list[Sentence]]) -> Iterator[tuple[list[Sentence], Scored]]:
        """Yield each batch of the list with what all features say of it, in order; it may read ahead.

        Raises:
            InputError: a feature that does not give a row of numbers for each candidate.
        """

    def end(self) -> None:
        """Tell the features that follow the list that it ends here."""

    def alone(self, label: str, sentence: Sentence) -> Array:
        """(candidates, values) of a feature of models that read one candidate after the other."""


class FeatureSet:
    """The features of some requests, in their order; what models say of a list may be kept in a `Journal`'s folder.

    Attributes:
        signatures: of each feature, by its label.
        of_models: labels of those of models.
        group: candidates of several sentences that models read together, at most.

    Raises:
        InputError: a feature cannot be made of its argument.
    """

    def __init__(self, requests: Sequence[FeatureRequest], resources: Resources, journal: str = "") -> None:
        self._resources = resources
        self._readers: dict[tuple[str, ...], Reader] = {}
        self._needs: dict[str, list[Need]] = {}
        self._features: dict[str, Feature | ListFeature | ModelFeature] = {}
        self._requests = tuple(requests)
        for request in requests:
            self._features[request.label] = self._make(request)
        self.signatures = {label: feature.signature for label, feature in self._features.items()}
        self.of_models = frozenset(self._needs)
        self.group = min((reader.group for reader in self._readers.values()), default=1)
        self._joint = _joint([need for needs in self._needs.values() for need in needs])
        self._journal = journal_of(journal, self.signatures, list(self._needs), resources)

    def score_all(self, batches: Iterable[list[Sentence]]) -> Iterator[tuple[list[Sentence], Scored]]:
        """Yield each batch with what all features say of it."""
        for sentences in batches:
            yield sentences, self.score(sentences)

    def score(self, sentences: Sequence[Sentence]) -> Scored:
        """Have all models read the sentences, a group at a time, and all features say what they make of them.

        Raises:
            InputError: a feature that does not give a row of numbers for each candidate.
        """
        parts, steps = [], Steps()
        for group in groups(sentences, self.group) if self._needs else ():
            values = self._journal.values(group) if self._journal else None
            if values is None:
                values, taken = self.values_of_models(group.sentences)
                steps = steps.plus(taken)
                if self._journal:
                    self._journal.keep(group, values)
            parts.append((group.places, values))
        by_label = in_order(parts) | self.values_without_models(sentences)
        return Scored([Column(label, by_label[label]) for label in self._features], steps)

    def values_of_models(self, sentences: Sequence[Sentence]) -> tuple[dict[str, Array], Steps]:
        """Have all models read a group; return (candidates, values) by the labels of their features, and the steps."""
        readings, steps, values = dict[tuple[str, ...], Reading](), Steps(), dict[str, Array]()
        for need in self._joint:
            reading = self._readers[need.folders].read(sentences, need.values, need.attention)
            readings[need.folders], steps = reading, steps.plus(reading.steps)
        for label, needs in self._needs.items():
            feature = self._features[label]
            assert isinstance(feature, ModelFeature)
            values[label] = _checked(label, feature(sentences, [readings[need.folders] for need in needs]), sentences)
        return values, steps

    def values_without_models(self, sentences: Sequence[Sentence]) -> dict[str, Array]:
        """Return (candidates, values) of the features that read no models, by their labels."""
        return {
            label: _checked(label, feature(sentences), sentences)
            for label, feature in self._features.items()
            if not isinstance(feature, ModelFeature)
        }

    def at_start(self) -> "FeatureSet":
        """Return the same features for another list: those that follow one begin again, models stay open."""
        other, features = copy.copy(self), dict(self._features)
        for request in self._requests:
            if isinstance(features[request.label], ListFeature):
                features[request.label] = self._make(request)
        other._features = features
        return other

    def end(self) -> None:
        """End the features that follow the list and run the checks of the others; called after the last sentence."""
        for feature in self._features.values():
            if isinstance(feature, ListFeature | CheckedFeature):
                feature.end()

    def alone(self, label: str, sentence: Sentence) -> Array:
        """(candidates, values) of a feature of models that read one candidate after the other."""
        feature, needs = self._features[label], self._needs[label]
        assert isinstance(feature, ModelFeature)
        readings = [self._readers[need.folders].alone(sentence, need.values, need.attention) for need in needs]
        return feature([sentence], readings)

    def _make(self, request: FeatureRequest) -> Feature | ListFeature | ModelFeature:
        kind = load(request.row.target)
        if not (isinstance(kind, type) and issubclass(kind, ModelFeature)):
            resources = replace(self._resources, folder=request.folder)
            feature: Feature | ListFeature = kind(request.argument, resources)
            return feature
        self._needs[request.label] = needs = kind.needs(request.argument)
        from features.reader import Reader  # torch comes in here

        for need in needs:
            if need.folders not in self._readers:
                self._readers[need.folders] = Reader(need.folders, self._resources)
        return kind(request.argument, [self._readers[need.folders] for need in needs])


def follows_list(request: FeatureRequest) -> bool:
    """Tell whether a request is one of a feature that follows the list."""
    kind = load(request.row.target)
    return isinstance(kind, type) and issubclass(kind, ListFeature)


def journal_of(
    folder: str, signatures: Mapping[str, str], of_models: Sequence[str], resources: Resources
) -> Journal | None:
    """Return the journal of the features of models, unless there are none, or no folder."""
    kept = {label: f"{signatures[label]}|{resources.precision}" for label in of_models}
    return Journal(folder, kept) if folder and kept else None


def in_order(parts: Sequence[tuple[Integers, Mapping[str, Array]]]) -> dict[str, Array]:
    """Join what was said of groups, the (n,) places of their candidates and (n, values) by label: (N, values)."""
    if not parts:
        return {}
    order = np.argsort(np.concatenate([places for places, _ in parts]))  # (N,)
    return {label: np.concatenate([values[label] for _, values in parts])[order] for label in parts[0][1]}


def _checked(label: str, values: Array, sentences: Sequence[Sentence]) -> Array:
    """Refuse values that are not a row for each candidate."""
    rows = sum(len(each.hypotheses) for each in sentences)
    shape = values.shape if isinstance(values, np.ndarray) else type(values).__name__
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[0] != rows or not shape[1]:
        raise InputError(f"feature '{label}': expected an array of ({rows}, values), a row a candidate, found {shape}")
    return values


def _joint(needs: Sequence[Need]) -> list[Need]:
    """Return what is needed of each model by all together."""
    joint: dict[tuple[str, ...], Need] = {}
    for need in needs:
        before = joint.get(need.folders, Need(need.folders))
        values = tuple(dict.fromkeys(before.values + need.values))
        joint[need.folders] = Need(need.folders, values, before.attention or need.attention)
    return list(joint.values())
