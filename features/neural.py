"""What trained models say of candidates."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from features.feature import VALUES, Array, Candidates, Resources
from features.models.device import find_device, is_out_of_memory
from features.models.folder import Model, load_model
from features.models.inference import fold, lower
from features.models.scoring import score_alone
from features.models.tree import Sentence, score_tree
from features.progress import note
from features.request import split_values
from moses_io.errors import InputError, nearest

GROUP = {"cpu": 4096, "cuda": 16384}
"""Candidates that are scored together, at most; a sentence with more is a group of its own."""


class Neural:
    """Values of a model, by default one: the sum of log p over the words of the model's target with `</s>`, in nats.

    A forward model gives p(hypothesis|source), a backward model p(source|hypothesis). Candidates that are the same
    words are scored once.

    Raises:
        InputError: an unknown value, or a folder that is no model.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        folders, names = split_values(argument)
        for name in names:
            if name not in VALUES:
                raise InputError(f"feature 'neural:{argument}': unknown value {name!r}{nearest(name, list(VALUES))}")
        self._names = names or ("logprob",)
        self._folders = self._split(folders)
        self._device = find_device(resources.device)
        self._models = self._load()
        if "fertility" in self._names and "fertility" not in self._models[0].config.architecture.objectives:
            raise InputError(f"{self._folders[0]}: a model without global fertility, which the value fertility needs")
        signatures = [model.signature for model in self._models]
        lowered = resources.precision == "bf16"
        self._backward = self._models[0].config.direction == "backward"
        for model in self._models:
            if not self._backward:
                fold(model.network)
            if lowered:
                lower(model.network, stepwise=not self._backward)
        told = ([f"values:{','.join(names)}"] if names else []) + (["precision:bf16"] if lowered else [])
        self.signature = "|".join([type(self).__name__.lower(), *signatures, *told])
        self.steps = (0, 0)
        """Steps that decoders took over prefix trees, and those of all candidates one by one."""

    def _split(self, argument: str) -> list[str]:
        return [argument]

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, values)."""
        starts = np.cumsum([0, *(len(candidates.hypotheses) for candidates in sentences)])
        values = np.empty((starts[-1], len(self._names)))
        for group in groups(sentences, GROUP[self._device.type]):
            rows = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in group])
            values[rows] = self._scored([(sentences[number].source, sentences[number].hypotheses) for number in group])
        return values

    def alone(self, sentences: Sequence[Candidates]) -> Array:
        """(N, values) in float32 by the models as they were trained, each candidate from its first word."""
        pairs = _pairs([(each.source, each.hypotheses) for each in sentences])
        return score_alone(self._exact, pairs, self._names).cpu().numpy()

    @cached_property
    def _exact(self) -> list[Model]:
        return self._load()

    def _load(self) -> list[Model]:
        return [load_model(Path(folder), self._device) for folder in self._folders]

    def _scored(self, sentences: Sequence[Sentence]) -> Array:
        """Score a group, or if the memory does not suffice its halves."""
        try:
            if self._backward:
                return score_alone(self._models, _pairs(sentences), self._names).cpu().numpy()
            values, steps, alone = score_tree(self._models, sentences, self._names)
            self.steps = (self.steps[0] + steps, self.steps[1] + alone)
            return values.cpu().numpy()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        count = sum(len(hypotheses) for _, hypotheses in sentences)
        if count == 1:
            raise InputError(f"out of memory for a single candidate of {len(sentences[0][1][0])} words")
        note(f"warning: out of memory; {count} candidates are scored in two parts")
        return np.concatenate([self._scored(half) for half in _halves(sentences)])


class Ensemble(Neural):
    """The same for several models: log of the mean of their distributions of the next word.

    The mean is that of the probabilities, word by word. Neither Luong et al. 2015 nor Cohn et al. 2016 say how they
    combine; the other way is one feature `neural` a model. Attention is that of the first model.

    Raises:
        InputError: a single model, or models that do not say the same words in the same order.
    """

    def _split(self, argument: str) -> list[str]:
        folders = argument.split(",")
        if len(folders) < 2:
            raise InputError(f"feature 'ensemble:{argument}': expected several models, separated by commas")
        return folders

    def _load(self) -> list[Model]:
        models = super()._load()
        for folder, model in zip(self._folders[1:], models[1:], strict=True):
            reason = _difference(models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {self._folders[0]}; use one feature 'neural' a model")
        return models


def groups(sentences: Sequence[Candidates], size: int) -> list[list[int]]:
    """Cut sentences into groups of sources of similar length; of several, with `size` candidates at most."""
    groups: list[list[int]] = []
    held = 0
    for number in sorted(range(len(sentences)), key=lambda number: len(sentences[number].source)):
        held += len(sentences[number].hypotheses)
        if not groups or held > size:
            groups.append([])
            held = len(sentences[number].hypotheses)
        groups[-1].append(number)
    return groups


def _pairs(sentences: Sequence[Sentence]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(source, hypothesis) for source, hypotheses in sentences for hypothesis in hypotheses]


def _halves(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """Cut between sentences, or a single one between its candidates."""
    if len(sentences) > 1:
        middle = len(sentences) // 2
        return [list(sentences[:middle]), list(sentences[middle:])]
    ((source, hypotheses),) = sentences
    middle = len(hypotheses) // 2
    return [[(source, hypotheses[:middle])], [(source, hypotheses[middle:])]]


def _difference(first: Model, other: Model) -> str:
    if other.config.direction != first.config.direction:
        return "another direction"
    if other.config.right_to_left != first.config.right_to_left:
        return "another order of words"
    return "" if other.target == first.target else "another target vocabulary"
