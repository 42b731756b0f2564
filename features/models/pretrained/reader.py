"""Scoring of sentences with a pretrained model of transformers, with an optional cache of values."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import torch

from features.arrays import Array
from features.cache import Cache
from features.feature import Reading, Resources, Sentence, Steps
from features.models.device import check_process, find_device, process_in_parts
from features.models.pretrained.encoding import Encoding
from features.models.pretrained.folder import Opened, open_folder, readable, visible_files
from features.models.pretrained.network import Seq2Seq
from features.models.pretrained.options import Options, parse_options
from features.models.pretrained.prefixes import (
    TOLERANCE,
    Candidate,
    find_abilities,
    score_prefixes,
    score_separately,
)
from features.progress import log
from moses_io.files.errors import InputError, at
from moses_io.files.streams import digest
from moses_io.files.text import encode

GROUP, PART = 16384, 2048
"""Maximum number of candidates in a group of several sentences, and number after which progress is shown."""

MEMORY = {"cpu": 2**30, "cuda": 2**33}
"""Bytes for the keys, values and logits of a batch, by type of device. It is fixed, so that batches, and therefore the
last bits of values, do not depend on other programs."""

VALUE_BYTES = 8
"""Bytes of a value in the cache."""

NAME = "logprob"
"""Name of the only value."""


class Pretrained:
    """A pretrained model.

    Attributes:
        causal: whether it is a causal language model.
        device: its device.
        languages: its languages.
        signature: languages, options and content of the model.
        group: maximum number of candidates in a group of several sentences.
        part: number of candidates after which progress is shown. A whole batch can take minutes.

    Raises:
        InputError: the folder has no such model, or an option is wrong.
    """

    group, part = GROUP, PART

    def __init__(self, folders: Sequence[str], resources: Resources) -> None:
        self._folder, options = parse_options(folders[0])
        self.device, self._process = find_device(resources.device), os.getpid()
        dtype = torch.bfloat16 if resources.precision == "bf16" else torch.float32
        opened = open_folder(self._folder, self.device, dtype)
        self.causal = opened.causal
        with readable(self._folder):
            self._encoding = Encoding(opened, self._folder, options)
            self.languages = self._encoding.languages
            self.network = self._encoding.network(opened.model)
            self._token_bytes, self._vocabulary = _token_bytes(opened), self._encoding.sizes[1]
            tolerance = 0.05 if dtype == torch.bfloat16 else TOLERANCE
            with at(f"{self._folder}: "):
                self._shares, self._pads = find_abilities(self.network, self._encoding.sizes, tolerance)
            if not self._shares:
                one = "separately" if self._pads else "in a batch of its own"
                log.warning(f"{self._folder}: this network cannot continue prefixes, so each candidate is scored {one}")
        self.signature = _signature(self._folder, options, self.languages[:2], resources.precision)
        self._cache = Cache(resources.cache) if resources.cache else None

    def read(self, sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False) -> Reading:
        """Return the log-probabilities of a group of sentences. There are no other values, and no attention.

        Raises:
            InputError: a text is longer than the model's maximum, there is not enough memory for a single candidate, or
                the model is on a GPU and this process was forked after it was opened.
        """
        check_process(self.device, self._process)
        if self._cache is None:
            values, steps = self._score(sentences)
            return Reading({NAME: values}, [], steps)
        keys = [self._key(each, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        known = {key: value for key, value in self._cache.get(keys).items() if len(value) == VALUE_BYTES}
        new, start = [], 0
        for each in sentences:
            part = keys[start : start + len(each.hypotheses)]
            missing = [text for text, key in zip(each.hypotheses, part, strict=True) if key not in known]
            if missing:
                new.append(replace(each, hypotheses=tuple(dict.fromkeys(missing)), lines=()))
            start += len(part)
        values, steps = self._score(new)
        new_keys = [self._key(each, hypothesis) for each in new for hypothesis in each.hypotheses]
        computed = {key: value.tobytes() for key, value in zip(new_keys, values, strict=True)}
        self._cache.store(computed)
        known |= computed
        return Reading({NAME: np.frombuffer(b"".join(known[key] for key in keys))}, [], steps)

    def score_separately(self, sentence: Sentence, names: Sequence[str], attention: bool = False) -> Reading:
        """Score each candidate separately, without sharing prefixes."""
        check_process(self.device, self._process)
        values = [float(score_separately(self.network, [pair])[0]) for pair in self._encoding([sentence])]
        return Reading({NAME: np.array(values)}, [])

    def generate(self, sources: Sequence[tuple[str, ...]], beam: int, best: int) -> list[list[str]]:
        """Return `best` translations of each source as natural text. The model is a sequence-to-sequence model."""
        assert isinstance(self.network, Seq2Seq)
        check_process(self.device, self._process)
        encoded = self._encoding.sources([Sentence(number, source, ()) for number, source in enumerate(sources)])
        empty, longest = self._encoding.target_of(""), self._encoding.longest
        texts = self._encoding.texts(self.network.generate(encoded, empty, beam, best, longest))
        return [texts[start : start + best] for start in range(0, len(texts), best)]

    def fits(self, hypothesis: Sequence[str]) -> bool:
        """Return whether a candidate is not longer than the model's maximum."""
        return self._encoding.fits(hypothesis)

    def _score(self, sentences: Sequence[Sentence]) -> tuple[Array, Steps]:
        """Return the values of some sentences' candidates, and the decoder steps that were taken."""
        pairs = self._encoding(sentences)
        numbers = {source: number for number, source in enumerate(dict.fromkeys(source for source, _ in pairs))}
        sources = list(numbers)
        # Batches of similar length need little padding, and sorted candidates share prefixes.
        candidates = sorted(
            {(numbers[source], target) for source, target in pairs},
            key=lambda each: (len(sources[each[0]]), *each),
        )
        values, steps = dict[Candidate, float](), Steps()
        for batch in self._batches(sources, candidates):
            scores, taken = self._score_batch(sources, batch)
            values.update(zip(batch, scores, strict=True))
            steps = steps.plus(taken)
        return np.array([values[numbers[source], target] for source, target in pairs], dtype=np.float64), steps

    def _batches(
        self, sources: Sequence[tuple[int, ...]], candidates: Sequence[Candidate]
    ) -> Iterator[Sequence[Candidate]]:
        """Yield parts of the candidates that fit into the memory."""
        start, longest = 0, 0
        for number, (index, target) in enumerate(candidates):
            size = len(sources[index]) + len(target)
            # A prompt of one token leaves nothing to read before its candidates, which networks need of all or none.
            single = {len(sources[each]) == 1 for each in (candidates[start][0], index)}
            needed = (number - start + 1) * self._row_bytes(max(longest, size))
            full = needed > MEMORY[self.device.type] or not (self._shares or self._pads)
            if number > start and (full or len(single) > 1):
                yield candidates[start:number]
                start, longest = number, 0
            longest = max(longest, size)
        if candidates:
            yield candidates[start:]

    def _row_bytes(self, size: int) -> int:
        """Return the bytes of a candidate that has `size` tokens together with its source."""
        logits = 2 * 4 * self._vocabulary  # and as much memory again for their normalization
        if not self._shares:
            return self._token_bytes * size + logits * size
        # Where prefixes branch, each belongs to two candidates or more. Its keys and values are copied once.
        return self._token_bytes * size + logits // 2

    def _score_batch(self, sources: Sequence[tuple[int, ...]], batch: Sequence[Candidate]) -> tuple[Array, Steps]:
        """Score candidates at once, or in parts if there is not enough memory."""

        def score(part: Sequence[Candidate]) -> tuple[Array, Steps]:
            if self._shares:
                size = max(1, MEMORY[self.device.type] // 4 // (2 * 4 * self._vocabulary))
                return score_prefixes(self.network, sources, part, size)
            return score_separately(self.network, [(sources[index], target) for index, target in part]), Steps()

        scores, steps = zip(*process_in_parts(batch, score, self._halves), strict=True)
        return np.concatenate(scores), reduce(Steps.plus, steps)

    def _halves(self, batch: Sequence[Candidate]) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
        """Return both halves of a batch. Raise `InputError` for a single candidate."""
        if len(batch) == 1:
            raise InputError(f"{self._folder}: out of memory for a single candidate of {len(batch[0][1])} subwords")
        log.warning(f"out of memory, {len(batch)} candidates are scored in two parts")
        middle = len(batch) // 2
        return batch[:middle], batch[middle:]

    def _key(self, sentence: Sentence, hypothesis: Sequence[str]) -> bytes:
        """Return the cache key of a candidate."""
        text = f"{self.signature}\n{' '.join(sentence.source)}\n{' '.join(hypothesis)}"
        return hashlib.blake2b(encode(text), digest_size=16).digest()


def _signature(folder: str, options: Options, languages: Sequence[str], precision: str) -> str:
    """Return the settings and digests of all files that determine the values."""
    content = "".join(map(digest, visible_files(Path(folder))))
    settings = [
        ",".join(languages) if any(languages) else "",
        f"text:{options.text}",
        f"language:{options.language}" if options.language else "",
        f"template:{digest(Path(options.template))}" if options.template else "",
        f"truecaser:{digest(Path(options.truecaser))}" if options.truecaser else "",
        f"precision:{precision}" if precision != "fp32" else "",
        f"sha256:{hashlib.sha256(content.encode()).hexdigest()[:12]}",
    ]
    return "hf|" + "|".join(filter(None, settings))


def _token_bytes(opened: Opened) -> int:
    """Return about the bytes of the keys and values of a token in all layers."""
    config = opened.model.config.get_text_config(decoder=True)
    layers = getattr(config, "decoder_layers", None) or config.num_hidden_layers
    # An encoder-decoder has keys and values of target tokens and of source tokens.
    return 2 * int(layers) * int(config.hidden_size) * int(opened.model.dtype.itemsize)
