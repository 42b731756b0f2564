"""Scoring of a list with several features. Each model is opened once and reads each group once for all features."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from features.arrays import Array, Integers
from features.cache import Journal
from features.feature import (
    CheckedFeature,
    Feature,
    ListFeature,
    ModelFeature,
    ModelReader,
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


class Column(NamedTuple):
    """A label and the values of its feature, (N, values)."""

    label: str
    values: Array


class Scored(NamedTuple):
    """Values of all features for a batch.

    Attributes:
        columns: the values.
        steps: decoder steps that it took.
        stored: whether an earlier run stored all values of models.
    """

    columns: list[Column]
    steps: Steps
    stored: bool = False


class Scorer(Protocol):
    """Interface of objects that score a list from its first sentence to its last.

    Attributes:
        signatures: signature of each feature, by label.
        of_models: labels of the features that use models.
        whole_lists: labels of the features that use models and need all candidates of a sentence.
    """

    signatures: dict[str, str]
    of_models: frozenset[str]
    whole_lists: frozenset[str]

    def score_all(self, batches: Iterable[list[Sentence]]) -> Iterator[tuple[list[Sentence], Scored]]:
        """Yield each batch of the list, in order, with the values of all features. May read batches ahead.

        Raises:
            InputError: a feature does not return one row of values for each candidate.
        """

    def end(self) -> None:
        """Notify features that the list has ended."""

    def score_separately(self, label: str, sentence: Sentence) -> Array:
        """Return the values of a model feature, (candidates, values), with each candidate scored separately."""


class FeatureSet:
    """The features of several requests, in their order.

    With `journal`, the values of model features are stored in this folder (`Journal`), so that an interrupted run can
    continue.

    Attributes:
        signatures: signature of each feature, by label.
        of_models: labels of the features that use models.
        whole_lists: labels of the features that use models and need all candidates of a sentence.
        group: maximum number of candidates in a group of several sentences.
        part: number of candidates after which progress is shown, 0 for whole batches.

    Raises:
        InputError: a feature cannot be created from its argument.
    """

    def __init__(self, requests: Sequence[FeatureRequest], resources: Resources, journal: str = "") -> None:
        self._resources = resources
        self._readers: dict[tuple[str, tuple[str, ...]], ModelReader] = {}
        self._needs: dict[str, list[Need]] = {}
        self._features: dict[str, Feature | ListFeature | ModelFeature] = {}
        self._requests = tuple(requests)
        for request in requests:
            self._features[request.label] = self._make(request)
        self.signatures = {label: feature.signature for label, feature in self._features.items()}
        self.of_models = frozenset(self._needs)
        whole = [label for label, each in self._features.items() if isinstance(each, ModelFeature) and each.whole_lists]
        self.whole_lists = frozenset(whole)
        self.group = min((reader.group for reader in self._readers.values()), default=1)
        self.part = min((reader.part for reader in self._readers.values() if reader.part), default=0)
        self._merged_needs = _merged_needs([need for needs in self._needs.values() for need in needs])
        self._journal = journal_of(journal, self.signatures, list(self._needs), resources)

    def score_all(self, batches: Iterable[list[Sentence]]) -> Iterator[tuple[list[Sentence], Scored]]:
        """Yield each batch, or parts of it if a model is slow, with the values of all features."""
        for sentences in split_batches(batches, self.part):
            yield sentences, self.score(sentences)

    def score(self, sentences: Sequence[Sentence]) -> Scored:
        """Return the values of all features for some sentences. Models read the sentences in groups.

        Raises:
            InputError: a feature does not return one row of values for each candidate.
        """
        parts = []
        steps = Steps()
        computed = False
        for group in groups(sentences, self.group, bool(self.whole_lists)) if self._needs else ():
            values = self._journal.values(group) if self._journal else None
            if values is None:
                values, group_steps = self.values_of_models(group.sentences)
                steps, computed = steps.plus(group_steps), True
                if self._journal:
                    self._journal.store(group, values)
            parts.append((group.indices, values))
        by_label = restore_order(parts) | self.values_without_models(sentences)
        columns = [Column(label, by_label[label]) for label in self._features]
        return Scored(columns, steps, stored=bool(parts) and not computed)

    def values_of_models(self, sentences: Sequence[Sentence]) -> tuple[dict[str, Array], Steps]:
        """Return the arrays (candidates, values) of the model features by label, and the decoder steps."""
        readings = dict[tuple[str, tuple[str, ...]], Reading]()
        steps = Steps()
        values = dict[str, Array]()
        for need in self._merged_needs:
            reading = self._readers[need.models].read(sentences, need.values, need.attention)
            readings[need.models], steps = reading, steps.plus(reading.steps)
        for label, needs in self._needs.items():
            feature = self._features[label]
            assert isinstance(feature, ModelFeature)
            values[label] = _checked(label, feature(sentences, [readings[need.models] for need in needs]), sentences)
        return values, steps

    def values_without_models(self, sentences: Sequence[Sentence]) -> dict[str, Array]:
        """Return the arrays (candidates, values) of the features without models, by label."""
        return {
            label: _checked(label, feature(sentences), sentences)
            for label, feature in self._features.items()
            if not isinstance(feature, ModelFeature)
        }

    def restarted(self) -> "FeatureSet":
        """Return a copy for another list: features that keep state are created again, models stay open."""
        other, features = copy.copy(self), dict(self._features)
        for request in self._requests:
            if isinstance(features[request.label], ListFeature):
                features[request.label] = self._make(request)
        other._features = features
        return other

    def end(self) -> None:
        """Run the final checks of the features. Called after the last sentence."""
        for feature in self._features.values():
            if isinstance(feature, ListFeature | CheckedFeature):
                feature.end()

    def score_separately(self, label: str, sentence: Sentence) -> Array:
        """Return the values of a model feature, (candidates, values), with each candidate scored separately."""
        feature, needs = self._features[label], self._needs[label]
        assert isinstance(feature, ModelFeature)
        readings = [
            self._readers[need.models].score_separately(sentence, need.values, need.attention) for need in needs
        ]
        return feature([sentence], readings)

    def _make(self, request: FeatureRequest) -> Feature | ListFeature | ModelFeature:
        kind = load(request.row.target)
        if not (isinstance(kind, type) and issubclass(kind, ModelFeature)):
            resources = replace(self._resources, folder=request.folder)
            feature: Feature | ListFeature = kind(request.argument, resources)
            return feature
        self._needs[request.label] = needs = kind.needs(request.argument)
        for need in needs:
            if need.models not in self._readers:
                reader = load(need.reader)  # imports torch, so only if a model is needed
                self._readers[need.models] = reader(need.folders, self._resources)
        return kind(request.argument, [self._readers[need.models] for need in needs])


def is_sequential(request: FeatureRequest) -> bool:
    """Return whether one process must see the whole list, to score it in order or to check it at its end."""
    kind = load(request.row.target)
    return isinstance(kind, type) and issubclass(kind, ListFeature | CheckedFeature)


def journal_of(
    folder: str, signatures: Mapping[str, str], of_models: Sequence[str], resources: Resources
) -> Journal | None:
    """Return the journal of the model features, or None if there are none or no folder is given."""
    stored_signatures = {label: f"{signatures[label]}|{resources.precision}" for label in of_models}
    return Journal(folder, stored_signatures) if folder and stored_signatures else None


def restore_order(parts: Sequence[tuple[Integers, Mapping[str, Array]]]) -> dict[str, Array]:
    """Join the values of groups and restore the order of the list.

    Args:
        parts: of each group, (n,) indices of its candidates and arrays (n, values) by label.

    Returns:
        (N, values) by label.
    """
    if not parts:
        return {}
    order = np.argsort(np.concatenate([indices for indices, _ in parts]))  # (N,)
    return {label: np.concatenate([values[label] for _, values in parts])[order] for label in parts[0][1]}


def split_batches(batches: Iterable[list[Sentence]], size: int) -> Iterator[list[Sentence]]:
    """Yield batches, or if a size is given, parts of them with so many candidates, or a few more."""
    for batch in batches:
        part: list[Sentence] = []
        count = 0
        for each in batch:
            part.append(each)
            count += len(each.hypotheses)
            if size and count >= size:
                yield part
                part, count = [], 0
        if part:
            yield part


def _checked(label: str, values: Array, sentences: Sequence[Sentence]) -> Array:
    """Raise `InputError` if the values are not an array of numbers with one row for each candidate."""
    rows = sum(len(each.hypotheses) for each in sentences)
    if isinstance(values, np.ndarray):
        found = f"{values.shape} of {values.dtype}"
        if values.ndim == 2 and len(values) == rows and values.shape[1] and values.dtype.kind in "biuf":
            return values
    else:
        found = type(values).__name__
    expected = f"an array of ({rows}, values) numbers, one row per candidate"
    raise InputError(f"feature '{label}': expected {expected}, found {found}")


def _merged_needs(needs: Sequence[Need]) -> list[Need]:
    """Merge needs of the same models into one."""
    joint: dict[tuple[str, tuple[str, ...]], Need] = {}
    for need in needs:
        before = joint.get(need.models, Need(need.folders))
        values = tuple(dict.fromkeys(before.values + need.values))
        joint[need.models] = need._replace(values=values, attention=before.attention or need.attention)
    return list(joint.values())
