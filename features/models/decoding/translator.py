"""Sentences in, their translations by a model or several out."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from features.feature import Resources, Sentence
from features.models.decoding.replacement import Replacement
from features.models.decoding.search import Beam, Ended, search
from features.models.device import find_device, is_out_of_memory
from features.models.folder import Model
from features.models.scoring.alone import encode_target
from features.models.scoring.inference import prepare
from features.models.scoring.members import Members
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
        prepared = partial(prepare, precision=resources.precision)
        self._members = Members(folders, self._device, "only such models can translate together", prepared)
        first = self._members.models[0]
        if first.config.direction == "backward":
            raise InputError(f"{folders[0]}: a backward model, which says the source; name forward models")
        if first.target.pieces or first.config.architecture.wiring == "none":  # no word could take its place
            self._beam = replace(beam, unknown=False)
        parts = [self._members.signature, f"beam:{beam.size}", *(["normalize:yes"] if beam.normalize else [])]
        parts += [f"unknown:{unknown.signature}", *(["precision:bf16"] if resources.precision == "bf16" else [])]
        self.signature = "|".join(parts)

    def translate(
        self, sources: Sequence[tuple[str, ...]], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each source, different ones, the best first: `best` of the beam, or less.

        Sources of similar length are translated together; `done` hears how many more, before they are yielded.

        A translation has at most twice as many words, or pieces of them, as the first model reads of the source, and
        ten more; of a source without words it is empty.

        Raises:
            InputError: the memory does not suffice for a beam of a single source.
        """
        for start in range(0, len(sources), WINDOW):
            window = sources[start : start + WINDOW]
            translations: list[list[Translation]] = [[] for _ in window]
            for places, models in self._batches(window):
                batch = [window[place] for place in places]
                for place, each in zip(places, self._together(models, batch), strict=True):
                    translations[place] = each
                done(len(places))
            yield from translations

    def _batches(self, sources: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], list[Model]]]:
        """Yield the places of sources of similar length that the same models translate together, and these models."""
        count = max(1, PREFIXES[self._device.type] // self._beam.size)
        for places, models in self._members.for_each(sources):
            order = sorted(places, key=lambda place: len(sources[place]))
            for first in range(0, len(order), count):
                yield order[first : first + count], models

    def _together(self, models: list[Model], sources: list[tuple[str, ...]]) -> list[list[Translation]]:
        """Translate sources, or if the memory does not suffice their halves."""
        limits = [2 * len(models[0].source.encode(source)) + 10 if source else 0 for source in sources]
        try:
            ended = search(models, sources, limits, self._beam)
            if not all(ended):
                raise InputError("the model gives no translation a probability: its weights are damaged")
            return self._worded(models, sources, ended)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        if len(sources) == 1:
            raise InputError(f"out of memory for a source of {len(sources[0])} words; name a smaller beam")
        middle = len(sources) // 2
        return [each for half in (sources[:middle], sources[middle:]) for each in self._together(models, half)]

    def _worded(
        self, models: list[Model], sources: list[tuple[str, ...]], ended: list[list[Ended]]
    ) -> list[list[Translation]]:
        """Put words for the tokens of the models; what they would cut into other tokens is scored anew."""
        first = models[0]
        said = [[first.target.decode(self._in_order(each.tokens)) for each in ends] for ends in ended]
        texts = self._unknown.replace(models, sources, said)
        log_probs: list[dict[tuple[str, ...], float]] = [{} for _ in sources]
        for known, ends, of_source in zip(log_probs, ended, texts, strict=True):
            for end, text in zip(ends, of_source, strict=True):
                known.setdefault(text, end.log_prob if encode_target(first, text) == end.tokens else math.nan)
        self._score(models, sources, log_probs)
        return [self._sorted(known) for known in log_probs]

    def _in_order(self, tokens: list[int]) -> list[int]:
        return tokens[::-1] if self._members.models[0].config.right_to_left else tokens

    def _score(
        self, models: list[Model], sources: list[tuple[str, ...]], log_probs: list[dict[tuple[str, ...], float]]
    ) -> None:
        """Score the texts that have no log-probability yet."""
        new = [tuple(text for text, value in known.items() if math.isnan(value)) for known in log_probs]
        numbers = [number for number, texts in enumerate(new) if texts]
        if not numbers:
            return
        sentences = [Sentence(number, sources[number], new[number]) for number in numbers]
        values = iter(score_tree(models, sentences, ["logprob"]).values[:, 0].tolist())
        for each in sentences:
            log_probs[each.sentence].update((text, next(values)) for text in each.hypotheses)

    def _sorted(self, known: dict[tuple[str, ...], float]) -> list[Translation]:
        """Return translations of a source in the order of their values."""
        target = self._members.models[0].target
        translations = [
            Translation(text, log_prob, self._beam.value(log_prob, len(target.encode(text)) + 1))
            for text, log_prob in known.items()
        ]
        return sorted(translations, key=lambda each: -each.value)
