"""Models that read lists once for all features that ask them.

A feature says at the start what it wants (`Reader.ask`); the first of them that is called has the model read the list,
and the others find what was read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates, Resources
from features.models.device import find_device, is_out_of_memory
from features.models.folder import Model, load_model
from features.models.scoring.alone import Rows, score_alone
from features.models.scoring.inference import fold, lower
from features.models.scoring.tree import Sentence, score_tree
from features.progress import note
from moses_io.errors import InputError

GROUP = {"cpu": 4096, "cuda": 16384}
"""Candidates that are scored together, at most; a sentence with more is a group of its own."""


@dataclass(frozen=True)
class Reading:
    """What was read of N candidates: (N,) of each value by its name, and rows of attention if they were asked for."""

    values: dict[str, Array]
    rows: list[Rows]


NOTHING: tuple[list[Candidates], Reading] = ([], Reading({}, []))


class Reader:
    """A model, or several as the mean of their distributions, as features use it.

    Raises:
        InputError: a folder that is no model.
    """

    def __init__(self, folders: Sequence[str], resources: Resources) -> None:
        self._folders, self._device = folders, find_device(resources.device)
        self._models = self._load()
        self.config = self._models[0].config
        self._backward = self.config.direction == "backward"
        lowered = resources.precision == "bf16"
        self.signature = "|".join([model.signature for model in self._models])
        self.precision = "precision:bf16" if lowered else ""
        for model in self._models:
            if not self._backward:
                fold(model.network)
            if lowered:
                lower(model.network, stepwise=not self._backward)
        self.steps = (0, 0)
        """Steps that decoders took over prefix trees, and those of all candidates one by one."""
        self._names: list[str] = []
        self._rows, self._askers = False, 0
        self._last = NOTHING

    def ask(self, names: Sequence[str] = (), rows: bool = False) -> None:
        """Have values, or rows of attention, among what is read from now on."""
        self._names += [name for name in names if name not in self._names]
        self._rows = self._rows or rows
        self._askers += 1
        self._last = NOTHING

    def __call__(self, sentences: Sequence[Candidates]) -> Reading:
        """Read sentences, or return what was read if they are those of the call before; one asker alone never needs it.

        Raises:
            InputError: the memory does not suffice for a single candidate.
        """
        if sentences and self._last[0] == list(sentences):
            return self._last[1]
        self._last = NOTHING
        reading = self._read(sentences)
        if self._askers > 1:
            self._last = (list(sentences), reading)
        return reading

    def alone(self, sentences: Sequence[Candidates], names: Sequence[str]) -> Array:
        """(N, names) in float32 by the models as they were trained, each candidate from its first word."""
        values, _ = score_alone(self._exact, _pairs([(each.source, each.hypotheses) for each in sentences]), names)
        return values.cpu().numpy()

    @cached_property
    def _exact(self) -> list[Model]:
        return self._load()

    def _load(self) -> list[Model]:
        models = [load_model(Path(folder), self._device) for folder in self._folders]
        for folder, model in zip(self._folders[1:], models[1:], strict=True):
            reason = _difference(models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {self._folders[0]}; use one feature 'neural' a model")
        return models

    def _read(self, sentences: Sequence[Candidates]) -> Reading:
        starts = np.cumsum([0, *(len(each.hypotheses) for each in sentences)])
        values = np.empty((starts[-1], len(self._names)))
        rows: list[Rows] = [np.empty((0, 0), dtype=np.float32)] * (int(starts[-1]) if self._rows else 0)
        for group in groups(sentences, GROUP[self._device.type]):
            places = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in group])
            found, seen = self._scored([(sentences[number].source, sentences[number].hypotheses) for number in group])
            values[places] = found
            for place, row in zip(places, seen, strict=False):
                rows[place] = row
        return Reading(dict(zip(self._names, values.T, strict=True)), rows)

    def _scored(self, sentences: Sequence[Sentence]) -> tuple[Array, list[Rows]]:
        """Score a group, or if the memory does not suffice its halves."""
        try:
            if self._backward:
                values, rows = score_alone(self._models, _pairs(sentences), self._names, self._rows)
            else:
                values, rows, steps, alone = score_tree(self._models, sentences, self._names, self._rows)
                self.steps = (self.steps[0] + steps, self.steps[1] + alone)
            return values.cpu().numpy(), rows
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        count = sum(len(hypotheses) for _, hypotheses in sentences)
        if count == 1:
            raise InputError(f"out of memory for a single candidate of {len(sentences[0][1][0])} words")
        note(f"warning: out of memory; {count} candidates are scored in two parts")
        (first, above), (second, below) = (self._scored(half) for half in _halves(sentences))
        return np.concatenate([first, second]), above + below


def find_reader(folders: Sequence[str], resources: Resources) -> Reader:
    """Return the reader of some models, which all features with the same resources share."""
    key = tuple(folders)
    if key not in resources.readers:
        resources.readers[key] = Reader(folders, resources)
    reader: Reader = resources.readers[key]
    return reader


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
