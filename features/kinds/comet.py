"""Scores of COMET models."""

from collections.abc import Sequence

from features.arrays import Array
from features.feature import ModelFeature, ModelReader, Need, Reading, Sentence


class Comet(ModelFeature):
    """One value: score of a COMET model (Rei et al. 2020).

    A model without references estimates the quality of a candidate. A regression metric, which needs references, takes
    all other candidates of the list, and the value is the mean over them (MBR, Fernandes et al. 2022).
    """

    whole_lists = True

    def __init__(self, argument: str, readers: Sequence[ModelReader]) -> None:
        self.signature = readers[0].signature

    @classmethod
    def needs(cls, argument: str) -> list[Need]:
        """Return one need for one model."""
        return [Need((argument,), ("score",), reader="features.models.comet.reader:Comet")]

    def __call__(self, sentences: Sequence[Sentence], readings: Sequence[Reading]) -> Array:
        """Return the values, (N, 1)."""
        return readings[0].values["score"][:, None]  # (N, 1)
