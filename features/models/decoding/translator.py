"""Translate source sentences with one or several models, and replace unknown words."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from features.arrays import AttentionRows
from features.feature import Resources, Sentence
from features.models.alignment import word_rows
from features.models.config import read_config
from features.models.decoding.search import Beam, Ended, search
from features.models.device import find_device, process_in_parts
from features.models.folder import Model
from features.models.scoring.members import Members
from features.models.scoring.pairs import encode_target
from features.models.scoring.tree import score_tree
from features.models.settings import NO_ATTENTION
from features.models.vocabulary import SPECIAL, UNKNOWN
from features.translation_table import NULL, read_table
from moses_io.files.errors import InputError
from moses_io.files.streams import check_plain, digest

KEEP, COPY = "keep", "copy"


class Replacement:
    """Replacement of `<unk>` (Luong et al. 2015, section 4; Yang et al. 2017, 5.2, after Jean et al. 2015).

    `<unk>` is replaced by the source word with most attention at its step, without `<s>` and `</s>`, on ties by the
    first, or by the most probable translation of this word in a table. Attention rows are computed by `word_rows`, with
    several models from the first one.

    Args:
        how: `keep` for `<unk>` itself, `copy` for the source word, or the path of Moses' `lex.f2e` for the most
            probable translation. The source word is copied if the table lacks it, or if its best translation is no
            word.
        backward: whether backward models translate. Their table is `lex.e2f`.

    Raises:
        InputError: the table cannot be read, or is the one for the other direction.
    """

    def __init__(self, how: str, backward: bool = False) -> None:
        self._keeps, self._translations = how == KEEP, dict[str, str]()
        self.signature = how
        if how in (KEEP, COPY):
            return
        if not how:
            raise InputError("unknown words: expected copy, keep or a file")
        expected, other = ("e2f", "f2e") if backward else ("f2e", "e2f")
        if other in Path(how).name:
            raise InputError(f"{how}: the table of the other direction, expected lex.{expected}")
        check_plain(how)
        for word, row in read_table(how).items():
            best = max(row, key=lambda translation: row[translation])
            if best != NULL:
                self._translations[word] = best
        self.signature = f"lex|sha256:{digest(Path(how))}"

    def replace(
        self,
        models: Sequence[Model],
        sources: Sequence[tuple[str, ...]],
        translations: Sequence[Sequence[Sequence[str]]],
    ) -> list[list[tuple[str, ...]]]:
        """Return the translations of each source with `<unk>` replaced.

        Args:
            models: the models that made the translations.
            sources: tokens of the sources.
            translations: translations of each source.
        """
        texts = [[tuple(text) for text in of_source] for of_source in translations]
        if self._keeps:
            return texts
        indices = [(number, index) for number, each in enumerate(texts) for index in range(len(each))]
        unknown = [(number, index) for number, index in indices if SPECIAL[UNKNOWN] in texts[number][index]]
        if unknown:
            sentences = [
                Sentence(each, sources[number], (texts[number][index],)) for each, (number, index) in enumerate(unknown)
            ]
            attention = score_tree(models[:1], sentences, [], attention=True).attention
            for (number, index), rows in zip(unknown, attention, strict=True):
                source, text = sources[number], texts[number][index]
                texts[number][index] = self._replaced(source, text, word_rows(models[0], source, text, rows))
        return texts

    def _replaced(self, source: tuple[str, ...], text: tuple[str, ...], rows: AttentionRows) -> tuple[str, ...]:
        """Return one translation with `<unk>` replaced, by attention rows (J, I)."""
        best = [source[index] for index in rows.argmax(axis=1)]
        unknown = SPECIAL[UNKNOWN]
        return tuple(
            self._translations.get(attended, attended) if token == unknown else token
            for token, attended in zip(text, best, strict=True)
        )


PREFIXES = {"cpu": 384, "cuda": 8192}
"""Maximum number of prefixes, over several sources, that are searched together."""
WINDOW = 1024
"""Number of sources that are sorted by length, so that sources searched together end at similar steps."""


class Translation(NamedTuple):
    """A translation of a source."""

    tokens: tuple[str, ...]
    log_prob: float  # natural log of p(tokens), `</s>` included, equal to the feature `neural`
    value: float  # value by which translations are compared (`Beam.value`)


class Translator:
    """Models that translate. Several models translate with the mean of their distributions.

    Attributes:
        signature: of the models and of the search.

    Args:
        folders: folders of the models.
        beam: settings of the search.
        unknown: replacement of unknown words.
        resources: device and precision.
        backward: whether they are backward models, which translate from the target language to the source language.

    Raises:
        InputError: a folder is not a model, a model has the other direction, or the models differ in the vocabulary or
            the word order of translations.
    """

    def __init__(
        self,
        folders: Sequence[str],
        beam: Beam,
        unknown: Replacement,
        resources: Resources,
        backward: bool = False,
    ) -> None:
        for folder in folders:
            _check_direction(folder, backward)
        self._device, self._beam, self._unknown = find_device(resources.device), beam, unknown
        self._members = Members(
            folders, self._device, "Models that translate together must agree in this", resources.precision, backward
        )
        first = self._members.models[0]
        if first.target.subwords or first.config.architecture.decoder == NO_ATTENTION:  # `<unk>` could not be replaced
            self._beam, self._unknown = replace(beam, unknown=False), Replacement(KEEP)
        parts = [self._members.signature, f"beam:{beam.size}", *(["normalize:yes"] if beam.normalize else [])]
        parts += [f"unknown:{unknown.signature}", *(["precision:bf16"] if resources.precision == "bf16" else [])]
        self.signature = "|".join(parts)

    def translate(
        self, sources: Sequence[tuple[str, ...]], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each source, without duplicates, best first: `best` of the beam, or fewer.

        Sources of similar length are translated together. Before their translations are yielded, `done` is called with
        their number.

        A translation has at most twice as many tokens as the first model reads of the source, plus ten. The translation
        of an empty source is empty.

        Raises:
            InputError: out of memory with a single source.
        """
        for start in range(0, len(sources), WINDOW):
            window = sources[start : start + WINDOW]
            translations: list[list[Translation]] = [[] for _ in window]
            for indices, models in self._batches(window):
                batch = [window[index] for index in indices]
                for index, each in zip(indices, self._together(models, batch), strict=True):
                    translations[index] = each
                done(len(indices))
            yield from translations

    def _batches(self, sources: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], list[Model]]]:
        """Yield indices of sources of similar length that the same models translate together, and these models."""
        count = max(1, PREFIXES[self._device.type] // self._beam.size)
        for indices, models in self._members.for_each(sources):
            order = sorted(indices, key=lambda index: len(sources[index]))
            for first in range(0, len(order), count):
                yield order[first : first + count], models

    def _together(self, models: list[Model], sources: Sequence[tuple[str, ...]]) -> list[list[Translation]]:
        """Translate sources together, or in parts if the memory does not suffice."""

        def translate(part: Sequence[tuple[str, ...]]) -> list[list[Translation]]:
            limits = [2 * len(models[0].source.encode(source)) + 10 if source else 0 for source in part]
            ended = search(models, part, limits, self._beam)
            if not all(ended):
                raise InputError("no translation has a probability above 0: the model's weights are damaged")
            return self._worded(models, part, ended)

        return [each for part in process_in_parts(sources, translate, halves_of) for each in part]

    def _worded(
        self, models: list[Model], sources: Sequence[tuple[str, ...]], ended: list[list[Ended]]
    ) -> list[list[Translation]]:
        """Turn tokens into words and replace `<unk>`. Score texts again whose tokens have changed."""
        first = models[0]
        translations = [[first.target.decode(self._in_order(each.tokens)) for each in ends] for ends in ended]
        texts = self._unknown.replace(models, sources, translations)
        log_probs: list[dict[tuple[str, ...], float]] = [{} for _ in sources]
        for known, ends, of_source in zip(log_probs, ended, texts, strict=True):
            for end, text in zip(ends, of_source, strict=True):
                known.setdefault(text, end.log_prob if encode_target(first, text) == end.tokens else math.nan)
        self._score(models, sources, log_probs)
        return [self._sorted(known) for known in log_probs]

    def _in_order(self, tokens: list[int]) -> list[int]:
        return tokens[::-1] if self._members.models[0].config.right_to_left else tokens

    def _score(
        self, models: list[Model], sources: Sequence[tuple[str, ...]], log_probs: list[dict[tuple[str, ...], float]]
    ) -> None:
        """Score the texts that have no log-probability yet (NaN)."""
        new = [tuple(text for text, value in known.items() if math.isnan(value)) for known in log_probs]
        numbers = [number for number, texts in enumerate(new) if texts]
        if not numbers:
            return
        sentences = [Sentence(number, sources[number], new[number]) for number in numbers]
        values = iter(score_tree(models, sentences, ["logprob"]).values["logprob"].tolist())
        for each in sentences:
            log_probs[each.sentence].update((text, next(values)) for text in each.hypotheses)

    def _sorted(self, known: dict[tuple[str, ...], float]) -> list[Translation]:
        """Return the translations of a source, sorted by value."""
        target = self._members.models[0].target
        translations = [
            Translation(text, log_prob, self._beam.value(log_prob, len(target.encode(text)) + 1))
            for text, log_prob in known.items()
        ]
        return sorted(translations, key=lambda each: -each.value)


def halves_of(sources: Sequence[tuple[str, ...]]) -> tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]:
    """Return both halves of some sources, for whose translation the memory does not suffice.

    Raises:
        InputError: there is only one source.
    """
    if len(sources) == 1:
        raise InputError(f"out of memory for a source of {len(sources[0])} words. Use a smaller beam")
    middle = len(sources) // 2
    return sources[:middle], sources[middle:]


def _check_direction(folder: str, backward: bool) -> None:
    """Raise `InputError` if a model cannot translate in this direction."""
    config = read_config(Path(folder))
    if config.architecture.language_model:
        raise InputError(f"{folder}: a language model, which does not translate. Use forward models")
    if (config.direction == "backward") != backward:
        if backward:
            raise InputError(f"{folder}: a forward model, which predicts the target. Use backward models")
        raise InputError(f"{folder}: a backward model, which predicts the source. Use forward models")
