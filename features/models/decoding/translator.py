"""Sentences in, their translations by a model or several out."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from features.feature import Resources, Sentence
from features.models.decoding.replacement import Replacement
from features.models.decoding.search import Beam, Ended, search
from features.models.device import find_device, within_memory
from features.models.folder import load_ensemble
from features.models.scoring.inference import fold, lower
from features.models.scoring.tree import score_tree
from features.models.vocabulary import SPECIAL, UNKNOWN
from moses_io.errors import InputError

PREFIXES = {"cpu": 512, "cuda": 8192}
"""Prefixes of several sources that are searched together, at most."""
WINDOW = 1024
"""Sources that are sorted by length, so that those which are searched together end together."""


class Translation(NamedTuple):
    """Tokens of a translation, and the natural log of p of these, `</s>` included, as a feature `neural` has it."""

    tokens: tuple[str, ...]
    log_prob: float


class Translator:
    """Forward models, of which several translate by the mean of their distributions.

    Attributes:
        signature: of the models and of how they search.

    Raises:
        InputError: a folder that is no model, a backward model, or models that do not say the same words in the same
            order.
    """

    def __init__(self, folders: Sequence[str], beam: Beam, unknown: Replacement, resources: Resources) -> None:
        self._device, self._beam, self._unknown = find_device(resources.device), beam, unknown
        self._models = load_ensemble(folders, self._device, "only such models can translate together")
        for folder, model in zip(folders, self._models, strict=True):
            if model.config.direction == "backward":
                raise InputError(f"{folder}: a backward model, which says the source; name forward models")
            fold(model.network)
            if resources.precision == "bf16":
                lower(model.network, stepwise=True)
        parts = [model.signature for model in self._models]
        parts += [f"beam:{beam.size}", *(["normalize:yes"] if beam.normalize else []), f"unknown:{unknown.signature}"]
        self.signature = "|".join([*parts, *(["precision:bf16"] if resources.precision == "bf16" else [])])

    def translate(self, sources: Sequence[tuple[str, ...]]) -> Iterator[list[Translation]]:
        """Yield the translations of each source, different ones, the best first: `best` of the beam, or less.

        A translation has at most twice as many tokens as the source and ten more; of a source without words it is
        empty.

        Raises:
            InputError: the memory does not suffice for a beam of a single source.
        """
        for start in range(0, len(sources), WINDOW):
            window = sources[start : start + WINDOW]
            order = sorted(range(len(window)), key=lambda place: len(window[place]))
            count = max(1, PREFIXES[self._device.type] // self._beam.size)
            translations: list[list[Translation]] = [[] for _ in window]
            for first in range(0, len(order), count):
                places = order[first : first + count]
                for place, each in zip(places, self._together([window[place] for place in places]), strict=True):
                    translations[place] = each
            yield from translations

    def _together(self, sources: list[tuple[str, ...]]) -> list[list[Translation]]:
        limits = [2 * len(source) + 10 if source else 0 for source in sources]
        with within_memory("name a smaller beam"):
            return self._worded(sources, search(self._models, sources, limits, self._beam))

    def _worded(self, sources: list[tuple[str, ...]], ended: list[list[Ended]]) -> list[list[Translation]]:
        """Put words for the tokens of the models; score anew what they would cut into other tokens."""
