"""Tokens to numbers, as whole words or as pieces."""

import collections
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from features.models.settings import Training
from features.models.subwords import Dropout, Subwords, joined, learn
from moses_io.errors import InputError, at
from moses_io.streams import check_plain, numbered_lines, open_output
from moses_io.text import decode, encode

PADDING, UNKNOWN, BEGIN, END = range(4)
Unit = TypeVar("Unit")
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Vocabulary:
    """The words, or pieces of words, that a model knows, in the order of their numbers; the first four are neither."""

    def __init__(self, words: Sequence[str], subwords: Subwords | None = None) -> None:
        self.words = (*SPECIAL, *words)
        self._numbers = {word: number for number, word in enumerate(words, start=len(SPECIAL))}
        self._subwords, self._model = subwords, subwords.model if subwords else b""

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.words, self._model) == (other.words, other._model)

    def encode(self, tokens: Iterable[str], dropout: Dropout | None = None) -> list[int]:
        """Return the numbers of the tokens or of their pieces, `UNKNOWN` for those that are not known.

        With `dropout` pieces are cut by chance, see `Subwords.cut_at_random`.
        """
        return flat(self.cut(tokens, dropout))

    def cut(self, tokens: Iterable[str], dropout: Dropout | None = None) -> list[list[int]]:
        """Return what `encode` does, a list for each token."""
        units = (_pieces(token, self._subwords, dropout) for token in tokens)
        return [[self._numbers.get(unit, UNKNOWN) for unit in each] for each in units]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the tokens of numbers, `<unk>` for `UNKNOWN`; of pieces, what they are joined to."""
        units = [self.words[number] for number in numbers]
        return joined(units) if self._subwords else units

    @property
    def pieces(self) -> bool:
        """Tell whether its words are pieces."""
        return self._subwords is not None

    def save(self, folder: Path, side: str) -> None:
        """Write `SIDE.vocabulary`, a line a word, without the special ones, and `SIDE.bpe` if there are pieces."""
        with open_output(str(folder / f"{side}.vocabulary")) as stream:
            stream.writelines(encode(f"{word}\n") for word in self.words[len(SPECIAL) :])
        if self._model:
            with open_output(str(folder / f"{side}.bpe")) as stream:
                stream.write(self._model)


def build_vocabulary(sentences: Sequence[Sequence[str]], training: Training) -> Vocabulary:
    """Keep the most frequent words, equals in the order of their bytes; of pieces, all that occur, or may by chance."""
    if training.bpe:
        subwords = learn(sentences, training.bpe)
        cut = (flat(_pieces(token, subwords) for token in tokens) for tokens in sentences)
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


def _pieces(token: str, subwords: Subwords | None, dropout: Dropout | None = None) -> list[str]:
    if subwords is None:
        return [token]
    return subwords.cut_at_random(token, dropout) if dropout else subwords.cut(token)


def _frequent(sentences: Iterable[Sequence[str]], frequency: int, size: int) -> list[str]:
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    kept = (word for word, count in counts.items() if count >= frequency and _may_be_kept(word))
    words = sorted(kept, key=lambda word: (-counts[word], word))
    return words[:size] if size else words
