"""What trained models say of candidates."""

from collections.abc import Sequence

import numpy as np

from features.feature import VALUES, Array, Candidates, Resources
from features.reader import find_reader
from features.request import split_values
from moses_io.errors import InputError, nearest


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
        split = self._split(folders)
        self._reader = find_reader(split, resources)
        if "fertility" in self._names and "fertility" not in self._reader.config.architecture.objectives:
            raise InputError(f"{split[0]}: a model without global fertility, which the value fertility needs")
        self._reader.ask(self._names)
        values = f"values:{','.join(names)}" if names else ""
        told = [type(self).__name__.lower(), self._reader.signature, values, self._reader.precision]
        self.signature = "|".join(part for part in told if part)

    def _split(self, argument: str) -> list[str]:
        return [argument]

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, values)."""
        reading = self._reader(sentences)
        return np.stack([reading.values[name] for name in self._names], axis=1)

    def alone(self, sentences: Sequence[Candidates]) -> Array:
        """(N, values) in float32 by the models as they were trained, each candidate from its first word."""
        return self._reader.alone(sentences, self._names)

    @property
    def steps(self) -> tuple[int, int]:
        """Steps that decoders took over prefix trees, and those of all candidates one by one."""
        return self._reader.steps


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
