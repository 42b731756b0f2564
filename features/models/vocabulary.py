"""Vocabularies, which map words or subwords to ids.

Subwords are learned and split by sentencepiece (byte pair encoding) on the tokens of Moses. Each token is split on its
own, so that subwords map back to tokens. Text is not normalized.
"""

import collections
import io
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import TypeVar

import sentencepiece

from features.models.settings import Training
from features.sentences import Sentences
from moses_io.files.errors import InputError, at
from moses_io.files.streams import check_plain, numbered_lines, open_output
from moses_io.files.text import decode, encode

MAX_CACHED_TOKENS = 100_000
"""Maximum number of tokens whose subwords are cached."""

_START = "▁"
"""Sentencepiece's mark for the start of a token."""


@dataclass(frozen=True)
class BpeDropout:
    """Settings of BPE-dropout.

    Attributes:
        probability: probability that a merge is dropped, 0 … 1.
        rng: random number generator.
    """

    probability: float
    rng: random.Random


class Subwords:
    """A trained sentencepiece model. `model` is the content of its file."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise InputError("damaged, or not a sentencepiece model") from None
        self._known: dict[str, list[str]] = {}

    def segment(self, token: str, dropout: BpeDropout | None = None) -> list[str]:
        """Return the subwords of a token, at least one, with random segmentation if `dropout` is given."""
        if dropout:
            return self.segment_randomly(token, dropout)
        if token not in self._known:
            if len(self._known) >= MAX_CACHED_TOKENS:
                self._known.clear()
            self._known[token] = self._processor.encode(_text(token), out_type=str) or [token]
        return self._known[token]

    def segment_randomly(self, token: str, dropout: BpeDropout) -> list[str]:
        """Return the subwords of a token, at least one, by BPE-dropout (Provilkov et al. 2020, algorithm 1).

        At each step each possible merge is dropped with this probability, and the remaining merge that was learned
        first is done. With a probability of 0 the result is that of `segment`. Sentencepiece's own random segmentation
        is not used, because it differs between processes whatever the seed is (0.2.3).
        """
        text = _text(token).rstrip(_START)
        if not text:
            return self.segment(token)
        ranks = self._ranks
        probability = dropout.probability
        random_number = dropout.rng.random
        parts = [_START, *text]
        while True:
            best, merge_position = len(ranks), -1
            for position in range(len(parts) - 1):
                rank = ranks.get(parts[position] + parts[position + 1], best)
                if rank < best and random_number() >= probability:
                    best, merge_position = rank, position
            if merge_position < 0:
                return list(self._runs(parts))
            parts[merge_position : merge_position + 2] = [parts[merge_position] + parts[merge_position + 1]]

    @property
    def all_subwords(self) -> list[str]:
        """All learned subwords, preceded by sentencepiece's three special symbols."""
        return [self._processor.id_to_piece(number) for number in range(len(self._processor))]

    def can_produce(self, subword: str) -> bool:
        """Return whether segmentation can produce this subword: a learned subword, or a run of unlearned characters."""
        return self._learned(subword) or not any(map(self._learned, subword.replace(_START, "")))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Rank of each subword in the order of learning, which is the priority of merges."""
        return {subword: rank for rank, subword in enumerate(self.all_subwords)}

    def _runs(self, parts: Sequence[str]) -> Iterator[str]:
        """Join adjacent characters that were not learned, as sentencepiece does."""
        for learned, run in groupby(parts, self._ranks.__contains__):
            characters = list(run)
            yield from characters if learned else ["".join(characters)]

    def _learned(self, subword: str) -> bool:
        return self._processor.piece_to_id(_text(subword)) != self._processor.unk_id()


def joined(subwords: Sequence[str]) -> list[str]:
    """Return the tokens that subwords form. Each token begins with sentencepiece's mark."""
    return [token for token in "".join(subwords).split(_START) if token]


def learn(counts: Mapping[str, int], size: int) -> Subwords:
    """Learn a subword model.

    Args:
        counts: number of occurrences of each token.
        size: number of subwords, including single characters and sentencepiece's three special symbols. If the text
            has fewer, all of them are learned.

    Raises:
        InputError: sentencepiece cannot learn so few subwords, or fails for another reason.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{_text(token)}\t{count}" for token, count in counts.items()),
            input_format="tsv",
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            normalization_rule_name="identity",
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = re.sub(r"^\w+: .*\] ", "", str(error))
        limit = re.search(r"too high .*<= (\d+)", reason)
        if not limit:
            raise InputError(f"setting 'bpe': sentencepiece cannot learn {size} subwords here: {reason}") from None
        return learn(counts, int(limit[1]))
    return Subwords(model.getvalue())


def _text(token: str) -> str:
    """Replace bytes that are not UTF-8, which sentencepiece does not accept."""
    return token.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


PADDING, UNKNOWN, BEGIN, END = range(4)
Unit = TypeVar("Unit")
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Vocabulary:
    """The words or subwords that a model knows, in the order of their ids.

    The first four ids belong to the symbols `SPECIAL`.
    """

    def __init__(self, words: Sequence[str], subwords: Subwords | None = None) -> None:
        self.words = (*SPECIAL, *words)
        self._numbers = {word: number for number, word in enumerate(words, start=len(SPECIAL))}
        self.subwords = subwords

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self.model) == (other.words, other.model)

    @property
    def model(self) -> bytes:
        """Content of the sentencepiece model, or empty for a vocabulary of words."""
        return self.subwords.model if self.subwords else b""

    def encode(self, tokens: Iterable[str], dropout: BpeDropout | None = None) -> list[int]:
        """Return the ids of tokens or of their subwords, `UNKNOWN` for unknown ones.

        With `dropout` the segmentation is random, see `Subwords.segment_randomly`.
        """
        return flat(self.encode_each(tokens, dropout))

    def encode_each(self, tokens: Iterable[str], dropout: BpeDropout | None = None) -> list[list[int]]:
        """Return the ids of `encode`, as one list for each token."""
        units = (self.subwords.segment(token, dropout) if self.subwords else [token] for token in tokens)
        return [[self._numbers.get(unit, UNKNOWN) for unit in each] for each in units]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the tokens of ids, `<unk>` for `UNKNOWN`. Subwords are joined to tokens."""
        units = [self.words[number] for number in numbers]
        return joined(units) if self.subwords else units

    def save(self, folder: Path, side: str) -> None:
        """Write `SIDE.vocabulary`, one word a line without `SPECIAL`, and `SIDE.bpe` for subwords."""
        with open_output(str(folder / f"{side}.vocabulary")) as stream:
            stream.writelines(encode(f"{word}\n") for word in self.words[len(SPECIAL) :])
        if self.subwords:
            with open_output(str(folder / f"{side}.bpe")) as stream:
                stream.write(self.subwords.model)


class EmptyVocabulary(Vocabulary):
    """The source vocabulary of a language model: all sources are read as empty ones."""

    def __init__(self) -> None:
        super().__init__([])

    def encode_each(self, tokens: Iterable[str], dropout: BpeDropout | None = None) -> list[list[int]]:
        """Return an empty list for each token."""
        return [[] for _ in tokens]


def build_vocabulary(sentences: Iterable[Sequence[str]], training: Training, extra: Sequence[str] = ()) -> Vocabulary:
    """Build the vocabulary of a tokenized corpus.

    It has the most frequent words, with ties in byte order, after the words of `extra`. With subwords it has all
    subwords that occur in the corpus, and with BPE-dropout also all learned subwords. `extra` is not used then.
    """
    counts = Sentences.of(sentences).counts()
    if not training.bpe:
        words = _frequent(counts, training.min_frequency, training.vocabulary_size)
        return Vocabulary([*extra, *(word for word in words if word not in extra)])
    subwords = learn(counts, training.bpe)
    used = collections.Counter(subwords.all_subwords if training.bpe_dropout else ())
    for token, count in counts.items():
        for subword in subwords.segment(token):
            used[subword] += count
    return Vocabulary(_frequent(used, 1, 0), subwords)


def load_vocabulary(folder: Path, side: str, has_subwords: bool) -> Vocabulary:
    """Read the files that `Vocabulary.save` writes.

    Args:
        folder: folder of the model.
        side: `source` or `target`.
        has_subwords: whether the vocabulary consists of subwords.

    Raises:
        InputError: a file is missing or damaged, or vocabulary and sentencepiece model do not match.
    """
    path, model = folder / f"{side}.vocabulary", folder / f"{side}.bpe"
    words = _read_words(path)
    if not has_subwords:
        if model.exists():
            raise InputError(f"{model}: the model uses whole words, expected no such file")
        return Vocabulary(words)
    check_plain(model)
    with at(f"{model}: "):
        subwords = Subwords(model.read_bytes())
    for number, word in enumerate(words, start=1):
        if not subwords.can_produce(word):
            raise InputError(f"{path}:{number}: {word!r} is not a subword of {model.name}")
    return Vocabulary(words, subwords)


def _read_words(path: Path) -> list[str]:
    check_plain(path)
    words: dict[str, None] = {}
    for number, line in numbered_lines(str(path)):
        word = decode(line.removesuffix(b"\n"))
        if not line.endswith(b"\n"):
            raise InputError(f"{path}:{number}: cut off, expected a word and a line end")
        if not _is_storable(word):
            raise InputError(f"{path}:{number}: found {word!r}, expected one word and LF")
        if word in words:
            raise InputError(f"{path}:{number}: {word!r}: the word occurs twice")
        words[word] = None
    return list(words)


def _is_storable(word: str) -> bool:
    """Return whether a word can be stored, one a line.

    Carriage returns are excluded, so that Windows line ends in a file are detected as errors.
    """
    return word not in SPECIAL and word != "" and " " not in word and "\r" not in word


def flat(parts: Iterable[Sequence[Unit]]) -> list[Unit]:
    """Concatenate lists."""
    return list(chain.from_iterable(parts))


def _frequent(counts: Mapping[str, int], frequency: int, size: int) -> list[str]:
    storable = (word for word, count in counts.items() if count >= frequency and _is_storable(word))
    words = sorted(storable, key=lambda word: (-counts[word], word))
    return words[:size] if size else words
