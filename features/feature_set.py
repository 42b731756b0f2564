"""Features that score a list together: each model is opened once, and reads a batch once for all that need it."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from features.arrays import Array
from features.feature import Feature, ListFeature, ModelFeature, Need, Reading, Resources, Sentence, Steps
from features.models.tables import load
from features.request import FeatureRequest

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


class FeatureSet:
    """The features of some requests, in their order.

    Attributes:
        signatures: of each feature, by its label.
        of_models: labels of those of models.

    Raises:
        InputError: a feature cannot be made of its argument.
    """

    def __init__(self, requests: Sequence[FeatureRequest], resources: Resources) -> None:
        self._resources = resources
        self._readers: dict[tuple[str, ...], Reader] = {}
        self._needs: dict[str, list[Need]] = {}
        self._features: dict[str, Feature | ListFeature | ModelFeature] = {}
        self._requests = tuple(requests)
        for request in requests:
            self._features[request.label] = self._make(request)
        self.signatures = {label: feature.signature for label, feature in self._features.items()}
        self.of_models = frozenset(self._needs)

    def score(self, sentences: Sequence[Sentence]) -> Scored:
        """Have all models read the sentences, and all features say what they make of them."""
        readings: dict[tuple[str, ...], Reading] = {}
        columns, steps = [], Steps()
        for need in _joint([need for needs in self._needs.values() for need in needs]):
            reading = self._readers[need.folders].read(sentences, need.values, need.attention)
            readings[need.folders], steps = reading, steps.plus(reading.steps)
        for label, feature in self._features.items():
            if isinstance(feature, ModelFeature):
                values = feature(sentences, [readings[need.folders] for need in self._needs[label]])
            else:
                values = feature(sentences)
            columns.append(Column(label, values))
        return Scored(columns, steps)

    def at_start(self) -> "FeatureSet":
        """Return the same features for another list: those that follow one begin again, models stay open."""
        other, features = copy.copy(self), dict(self._features)
        for request in self._requests:
            if isinstance(features[request.label], ListFeature):
                features[request.label] = self._make(request)
        other._features = features
        return other

    def end(self) -> None:
        """Tell the features that follow a list that it ends here."""
        for feature in self._features.values():
            if isinstance(feature, ListFeature):
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
            feature: Feature | ListFeature = kind(request.argument, self._resources)
            return feature
        self._needs[request.label] = needs = kind.needs(request.argument)
        from features.reader import Reader  # torch comes in here

        for need in needs:
            if need.folders not in self._readers:
                self._readers[need.folders] = Reader(need.folders, self._resources)
        return kind(request.argument, [self._readers[need.folders] for need in needs])


def _joint(needs: Sequence[Need]) -> list[Need]:
    """Return what is needed of each model by all together."""
    joint: dict[tuple[str, ...], Need] = {}
    for need in needs:
        before = joint.get(need.folders, Need(need.folders))
        values = tuple(dict.fromkeys(before.values + need.values))
        joint[need.folders] = Need(need.folders, values, before.attention or need.attention)
    return list(joint.values())
