"""Sentences in, their translations by a model or several out."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from features.feature import Resources, Sentence
from features.models.decoding.replacement import Replacement
from features.models.decoding.search import Beam, Ended, search
from features.models.device import find_device, within_memory
from features.models.folder import load_ensemble
from features.models.scoring.alone import encode_target
from features.models.scoring.inference import fold, lower
from features.models.scoring.tree import score_tree
from moses_io.errors import InputError

PREFIXES = {"cpu": 384, "cuda": 8192}
"""Prefixes of several sources that are searched together, at most."""
WINDOW = 1024
"""Sources that are sorted by length, so that those which are searched together end together."""


class Translation(NamedTuple):
    """A translation of a source."""

    tokens: tuple[str, ...]
    log_prob: float  # natural log of p(tokens), `</s>` included, as the feature `neural` has it
    value: float  # by which it is compared with others, see `Beam.value`


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
        first = self._models[0]
        if first.target.pieces or first.config.architecture.wiring == "none":  # no word could take its place
            self._beam = replace(beam, unknown=False)
        parts = [model.signature for model in self._models]
        parts += [f"beam:{beam.size}", *(["normalize:yes"] if beam.normalize else []), f"unknown:{unknown.signature}"]
        self.signature = "|".join([*parts, *(["precision:bf16"] if resources.precision == "bf16" else [])])

    def translate(
        self, sources: Sequence[tuple[str, ...]], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each source, different ones, the best first: `best` of the beam, or less.

        Sources of similar length are translated together; `done` hears how many more, before they are yielded.

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
                done(len(places))
            yield from translations

    def _together(self, sources: list[tuple[str, ...]]) -> list[list[Translation]]:
        limits = [2 * len(source) + 10 if source else 0 for source in sources]
        with within_memory("name a smaller beam"):
            ended = search(self._models, sources, limits, self._beam)
            if not all(ended):
                raise InputError("the model gives no translation a probability: its weights are damaged")
            return self._worded(sources, ended)

    def _worded(self, sources: list[tuple[str, ...]], ended: list[list[Ended]]) -> list[list[Translation]]:
        """Put words for the tokens of the models; what they would cut into other tokens is scored anew."""
        first = self._models[0]
        said = [[first.target.decode(self._in_order(each.tokens)) for each in ends] for ends in ended]
        texts = self._unknown.replace(self._models, sources, said)
        log_probs: list[dict[tuple[str, ...], float]] = [{} for _ in sources]
        for known, ends, of_source in zip(log_probs, ended, texts, strict=True):
            for end, text in zip(ends, of_source, strict=True):
                known.setdefault(text, end.log_prob if encode_target(first, text) == end.tokens else math.nan)
        self._score(sources, log_probs)
        return [self._sorted(known) for known in log_probs]

    def _in_order(self, tokens: list[int]) -> list[int]:
        return tokens[::-1] if self._models[0].config.right_to_left else tokens

    def _score(self, sources: list[tuple[str, ...]], log_probs: list[dict[tuple[str, ...], float]]) -> None:
        """Score the texts that have no log-probability yet."""
        new = [tuple(text for text, value in known.items() if math.isnan(value)) for known in log_probs]
        numbers = [number for number, texts in enumerate(new) if texts]
        if not numbers:
            return
        sentences = [Sentence(number, sources[number], new[number]) for number in numbers]
        values = iter(score_tree(self._models, sentences, ["logprob"]).values[:, 0].tolist())
        for each in sentences:
            log_probs[each.sentence].update((text, next(values)) for text in each.hypotheses)

    def _sorted(self, known: dict[tuple[str, ...], float]) -> list[Translation]:
        """Return translations of a source in the order of their values."""
        target = self._models[0].target
        translations = [
            Translation(text, log_prob, self._beam.value(log_prob, len(target.encode(text)) + 1))
            for text, log_prob in known.items()
        ]
        return sorted(translations, key=lambda each: -each.value)
