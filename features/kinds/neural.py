"""What trained models say of candidates."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Array
from features.feature import ModelFeature, Need, Reading, Sentence
from features.models.tables import VALUES
from features.reader import Reader
from features.request import split_values
from moses_io.errors import InputError, nearest, shown


class Neural(ModelFeature):
    """Values of a model, by default one: the sum of log p over the words of the model's target with `</s>`, in nats.

    A forward model gives p(hypothesis|source), a backward model p(source|hypothesis).

    Raises:
        InputError: an unknown value, or one that the model cannot give.
    """

    def __init__(self, argument: str, readers: Sequence[Reader]) -> None:
        (reader,) = readers
        (need,) = self.needs(argument)
        if "fertility" in need.values and "fertility" not in reader.config.architecture.objectives:
            raise InputError(f"{need.folders[0]}: a model without global fertility, which the value fertility needs")
        self._names = need.values
        _, named = split_values(argument)
        parts = [type(self).__name__.lower(), reader.signature, f"values:{','.join(named)}" if named else ""]
        self.signature = "|".join(part for part in (*parts, reader.precision) if part)

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return one need, of one model."""
        folders, names = split_values(argument)
        for place, name in enumerate(names):
            if name not in VALUES:
                raise InputError(
                    f"feature 'neural:{argument}': unknown value {shown(name)}{nearest(name, list(VALUES))}"
                )
            if name in names[:place]:
                raise InputError(f"feature 'neural:{argument}': value '{name}' stands there twice")
        return [Need(cls._folders(folders), names or ("logprob",))]

    @classmethod
    def _folders(cls, argument: str) -> tuple[str, ...]:
        return (argument,)

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """(N, values)."""
        (reading,) = readings
        return np.stack([reading.values[name] for name in self._names], axis=1)  # (N, values)


class Ensemble(Neural):
    """The same for several models: log of the mean of their distributions of the next word.

    The mean is that of the probabilities, word by word. Neither Luong et al. 2015 nor Cohn et al. 2016 say how they
    combine; the other way is one feature `neural` a model. Attention is that of the first model.

    Raises:
        InputError: a single model, or models that do not say the same words in the same order.
    """

    @classmethod
    def _folders(cls, argument: str) -> tuple[str, ...]:
        folders = tuple(argument.split(","))
        if len(folders) < 2:
            raise InputError(f"feature 'ensemble:{argument}': expected several models, separated by commas")
        return folders
