"""Scoring of sentences with models, with an optional cache of values."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np

from features.cache import Cache
from features.feature import Reading, Resources, Sentence, Steps
from features.models.device import find_device, process_in_parts
from features.models.folder import Model
from features.models.scoring.members import Members
from features.models.scoring.pairs import score_one_by_one
from features.models.scoring.tree import score_tree
from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.text import encode

GROUP = {"cpu": 4096, "cuda": 16384}
"""Maximum number of candidates in a group of several sentences, by type of device."""

VALUE_BYTES = 8
"""Bytes of a value in the cache."""


class Reader:
    """One model, or several models whose distributions are averaged.

    Attributes:
        folders: folders of the models.
        config: configuration of the first model. The other models have the same direction and order of words.
        signature: signature of the models.
        precision: part of the signature for bfloat16 products, empty for float32.
        group: maximum number of candidates in a group of several sentences.
        part: number of candidates after which progress is shown, 0 for whole batches.

    Raises:
        InputError: a folder is not a model, or the models differ in direction, order of words or target vocabulary.
    """

    part = 0

    def __init__(self, folders: Sequence[str], resources: Resources) -> None:
        self.folders, self._device = folders, find_device(resources.device)
        self._members = self._load(resources.precision)
        self.group = GROUP[self._device.type]
        self.config, self.signature = self._members.models[0].config, self._members.signature
        self.precision = "precision:bf16" if resources.precision == "bf16" else ""
        self._cache = Cache(resources.cache) if resources.cache else None

    def read(self, sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False) -> Reading:
        """Return the named values of a group of sentences, and the rows of attention if requested.

        Attention is never cached, so a request for attention does not use the cache.

        Raises:
            InputError: there is not enough memory for a single candidate.
        """
        if self._cache is None or attention:
            return self._score(sentences, names, attention)
        keys = [self._keys(each, names) for each in sentences]
        # A value of another size is not a float64, so it is computed again.
        cached = self._cache.get([key for rows in keys for row in rows for key in row])
        known = {key: value for key, value in cached.items() if len(value) == VALUE_BYTES}
        new, new_keys = [], []
        for each, rows in zip(sentences, keys, strict=True):
            indices = [index for index, row in enumerate(rows) if not known.keys() >= set(row)]
            if indices:
                new.append(replace(each, hypotheses=tuple(each.hypotheses[index] for index in indices)))
                new_keys += [key for index in indices for key in rows[index]]
        steps = Steps()
        if new:
            reading = self._score(new, names, attention=False)
            values = np.stack([reading.values[name] for name in names], axis=1)  # (new candidates, names)
            computed = {key: value.tobytes() for key, value in zip(new_keys, values.ravel(), strict=True)}
            self._cache.store(computed)
            known, steps = known | computed, reading.steps
        values = np.frombuffer(b"".join(known[key] for rows in keys for row in rows for key in row))
        return Reading(dict(zip(names, values.reshape(-1, len(names)).T, strict=True)), [], steps)

    def score_separately(self, sentence: Sentence, names: Sequence[str], attention: bool = False) -> Reading:
        """Score each candidate separately, without sharing prefixes.

        Uses float32 and the weights exactly as trained.
        """
        ((_, models),) = self._exact.for_each([sentence.source])
        return score_one_by_one(models, [sentence], names, attention)

    @cached_property
    def _exact(self) -> Members:
        return self._load()

    def _load(self, precision: str = "") -> Members:
        return Members(self.folders, self._device, "Use one feature 'neural' per model", precision)

    def _keys(self, sentence: Sentence, names: Sequence[str]) -> list[list[bytes]]:
        """Return the cache keys of each candidate's values."""
        signature = self._members.signature_for(sentence.source)
        models = f"{signature}|{self.precision}\n{' '.join(sentence.source)}\n"
        texts = [encode(models + " ".join(hypothesis)) for hypothesis in sentence.hypotheses]
        starts = [name.encode() + b"\n" for name in names]
        return [[hashlib.blake2b(start + text, digest_size=16).digest() for start in starts] for text in texts]

    def _score(self, sentences: Sequence[Sentence], names: Sequence[str], attention: bool) -> Reading:
        """Score sentences without the cache, grouped by the weights that score them."""
        parts = []
        for indices, models in self._members.for_each([each.source for each in sentences]):
            parts.append((indices, self._score_by(models, [sentences[index] for index in indices], names, attention)))
        return parts[0][1] if len(parts) == 1 else _in_order(sentences, parts)

    def _score_by(
        self, models: Sequence[Model], sentences: Sequence[Sentence], names: Sequence[str], attention: bool
    ) -> Reading:
        """Score sentences with the given models, in parts if there is not enough memory."""

        def score(part: Sequence[Sentence]) -> Reading:
            if self.config.direction == "backward":
                return score_one_by_one(models, part, names, attention, shared=True)
            return score_tree(models, part, names, attention)

        return _joined(process_in_parts(sentences, score, self._halves))

    def _halves(self, sentences: Sequence[Sentence]) -> Sequence[Sequence[Sentence]]:
        """Split a list of sentences in the middle, or the candidates of a single sentence.

        Raises:
            InputError: there is only one candidate.
        """
        count = sum(len(each.hypotheses) for each in sentences)
        if count == 1:
            words = counted(len(sentences[0].hypotheses[0]), "word")
            raise InputError(f"{self.folders[0]}: out of memory for a single candidate of {words}")
        log.warning(f"out of memory, {count} candidates are scored in two parts")
        if len(sentences) > 1:
            middle = len(sentences) // 2
            return sentences[:middle], sentences[middle:]
        (only,) = sentences
        middle = len(only.hypotheses) // 2
        return [[replace(only, hypotheses=part)] for part in (only.hypotheses[:middle], only.hypotheses[middle:])]


def _in_order(sentences: Sequence[Sentence], parts: Sequence[tuple[Sequence[int], Reading]]) -> Reading:
    """Join readings of parts, given with the indices of their sentences, in the order of all sentences."""
    counts = np.array([len(each.hypotheses) for each in sentences])  # (n,)
    firsts = np.cumsum(counts) - counts  # (n,)
    rows = [np.arange(firsts[index], firsts[index] + counts[index]) for indices, _ in parts for index in indices]
    order, joined = np.argsort(np.concatenate(rows)), _joined([reading for _, reading in parts])  # (N,)
    attention = [joined.attention[row] for row in order] if joined.attention else []
    return joined._replace(values={name: each[order] for name, each in joined.values.items()}, attention=attention)


def _joined(parts: Sequence[Reading]) -> Reading:
    """Concatenate readings."""
    return Reading(
        values={name: np.concatenate([each.values[name] for each in parts]) for name in parts[0].values},
        attention=[rows for each in parts for rows in each.attention],
        steps=reduce(Steps.plus, (each.steps for each in parts)),
    )
