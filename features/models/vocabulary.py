"""Tokens to numbers, as whole words or as pieces of words.

Pieces are learned and cut by sentencepiece (byte pair encoding) on the tokens of Moses. A token is cut by itself, so
that pieces map back to tokens. Text is taken as it is, without normalization.
"""

import collections
import io
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import TypeVar

import sentencepiece

from features.models.settings import Training
from moses_io.files.errors import InputError, at
from moses_io.files.streams import check_plain, numbered_lines, open_output
from moses_io.files.text import decode, encode

MOST_KNOWN = 100_000
"""Tokens whose pieces are remembered."""

_START = "▁"
"""Sentencepiece's mark of where a token begins."""


@dataclass(frozen=True)
class Dropout:
    """Merges that are left out by chance.

    Attributes:
        share: how likely each of them is left out, 0 … 1.
        rng: what decides.
    """

    share: float
    rng: random.Random


class Subwords:
    """A trained sentencepiece model; `model` is its file's content."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise InputError("damaged, or not a sentencepiece model") from None
        self._known: dict[str, list[str]] = {}

    def cut(self, token: str, dropout: Dropout | None = None) -> list[str]:
        """Return the pieces of a token, at least one; cut by chance with `dropout`."""
        if dropout:
            return self.cut_at_random(token, dropout)
        if token not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[token] = self._processor.encode(_text(token), out_type=str) or [token]
        return self._known[token]

    def cut_at_random(self, token: str, dropout: Dropout) -> list[str]:
        """Return pieces of a token, at least one: at each step each merge is left out by chance, the first one is done.

        BPE-dropout (Provilkov et al. 2020, algorithm 1); with a share of 0 the pieces of `cut`. Sentencepiece's own
        cuts by chance differ from process to process (0.2.3), whatever the seed.
        """
        text = _text(token).rstrip(_START)
        if not text:
            return self.cut(token)
        ranks, share, chance = self._ranks, dropout.share, dropout.rng.random
        parts = [_START, *text]
        while True:
            best, at = len(ranks), -1
            for place in range(len(parts) - 1):
                rank = ranks.get(parts[place] + parts[place + 1], best)
                if rank < best and chance() >= share:
                    best, at = rank, place
            if at < 0:
                return list(self._runs(parts))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    @property
    def pieces(self) -> list[str]:
        """All pieces that were learned, and sentencepiece's three marks."""
        return [self._processor.id_to_piece(number) for number in range(len(self._processor))]

    def gives(self, piece: str) -> bool:
        """Tell whether cutting may give this piece: one that was learned, or a run of letters that were not."""
        return self._learned(piece) or not any(map(self._learned, piece.replace(_START, "")))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """When each piece was learned, the first one first."""
        return {piece: number for number, piece in enumerate(self.pieces)}

    def _runs(self, parts: Sequence[str]) -> Iterator[str]:
        """Join letters beside each other that were not learned, as sentencepiece does."""
        for learned, run in groupby(parts, self._ranks.__contains__):
            letters = list(run)
            yield from letters if learned else ["".join(letters)]

    def _learned(self, piece: str) -> bool:
        return self._processor.piece_to_id(_text(piece)) != self._processor.unk_id()


def joined(pieces: Sequence[str]) -> list[str]:
    """Return the tokens that pieces are of: each begins with sentencepiece's mark."""
    return [token for token in "".join(pieces).split(_START) if token]


def learn(sentences: Sequence[Sequence[str]], pieces: int) -> Subwords:
    """Learn `pieces` pieces, the single letters and sentencepiece's three marks among them, or all that there are."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(_text(" ".join(tokens)) for tokens in sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=pieces,
            character_coverage=1.0,
            normalization_rule_name="identity",
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = re.sub(r"^\w+: .*\] ", "", str(error))
        most = re.search(r"too high .*<= (\d+)", reason)
        if not most:
            raise InputError(f"setting 'bpe': sentencepiece cannot learn {pieces} pieces here: {reason}") from None
        return learn(sentences, int(most[1]))
    return Subwords(model.getvalue())


def _text(token: str) -> str:
    """Put a mark for bytes that are no UTF-8, which sentencepiece does not take."""
    return token.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


PADDING, UNKNOWN, BEGIN, END = range(4)
Unit = TypeVar("Unit")
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Vocabulary:
    """The words, or pieces of words, that a model knows, in the order of their numbers; the first four are neither."""

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
        """Content of the sentencepiece model, if its words are pieces."""
        return self.subwords.model if self.subwords else b""

    def encode(self, tokens: Iterable[str], dropout: Dropout | None = None) -> list[int]:
        """Return the numbers of the tokens or of their pieces, `UNKNOWN` for those that are not known.

        With `dropout` pieces are cut by chance, see `Subwords.cut_at_random`.
        """
        return flat(self.cut(tokens, dropout))

    def cut(self, tokens: Iterable[str], dropout: Dropout | None = None) -> list[list[int]]:
        """Return what `encode` does, a list for each token."""
        units = (self.subwords.cut(token, dropout) if self.subwords else [token] for token in tokens)
        return [[self._numbers.get(unit, UNKNOWN) for unit in each] for each in units]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the tokens of numbers, `<unk>` for `UNKNOWN`; of pieces, what they are joined to."""
        units = [self.words[number] for number in numbers]
        return joined(units) if self.subwords else units

    def save(self, folder: Path, side: str) -> None:
        """Write `SIDE.vocabulary`, a line a word, without the special ones, and `SIDE.bpe` if there are pieces."""
        with open_output(str(folder / f"{side}.vocabulary")) as stream:
            stream.writelines(encode(f"{word}\n") for word in self.words[len(SPECIAL) :])
        if self.subwords:
            with open_output(str(folder / f"{side}.bpe")) as stream:
                stream.write(self.subwords.model)


def build_vocabulary(sentences: Sequence[Sequence[str]], training: Training) -> Vocabulary:
    """Keep the most frequent words, equals in the order of their bytes; of pieces, all that occur, or may by chance."""
    if training.bpe:
        subwords = learn(sentences, training.bpe)
        cut = (flat(map(subwords.cut, tokens)) for tokens in sentences)
        by_chance = [subwords.pieces] if training.bpe_dropout else []
        return Vocabulary(_frequent(chain(cut, by_chance), 1, 0), subwords)
    return Vocabulary(_frequent(sentences, training.frequency, training.words))


def load_vocabulary(folder: Path, side: str, pieces: bool) -> Vocabulary:
    """Read what `Vocabulary.save` wrote, of whole words or of pieces.

    Raises:
        InputError: a file is missing or damaged, or the two of pieces do not belong together.
    """
    path, model = folder / f"{side}.vocabulary", folder / f"{side}.bpe"
    words = _read_words(path)
    if not pieces:
        if model.exists():
            raise InputError(f"{model}: the model is one of whole words, expected no such file")
        return Vocabulary(words)
    check_plain(model)
    with at(f"{model}: "):
        subwords = Subwords(model.read_bytes())
    for number, word in enumerate(words, start=1):
        if not subwords.gives(word):
            raise InputError(f"{path}:{number}: {word!r} is no piece of {model.name}")
    return Vocabulary(words, subwords)


def _read_words(path: Path) -> list[str]:
    check_plain(path)
    words: dict[str, None] = {}
    for number, line in numbered_lines(str(path)):
        word = decode(line.removesuffix(b"\n"))
        if not line.endswith(b"\n"):
            raise InputError(f"{path}:{number}: cut off, expected a word and a line end")
        if not _may_be_kept(word):
            raise InputError(f"{path}:{number}: found {word!r}, expected one word and LF")
        if word in words:
            raise InputError(f"{path}:{number}: {word!r}: a word stands there twice")
        words[word] = None
    return list(words)


def _may_be_kept(word: str) -> bool:
    """Tell whether a word may stand in a vocabulary, where line ends of Windows are not to be taken for words."""
    return word not in SPECIAL and word != "" and " " not in word and "\r" not in word


def flat(parts: Iterable[Sequence[Unit]]) -> list[Unit]:
    """Join lists into one."""
    return list(chain.from_iterable(parts))


def _frequent(sentences: Iterable[Sequence[str]], frequency: int, size: int) -> list[str]:
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    kept = (word for word, count in counts.items() if count >= frequency and _may_be_kept(word))
    words = sorted(kept, key=lambda word: (-counts[word], word))
    return words[:size] if size else words
