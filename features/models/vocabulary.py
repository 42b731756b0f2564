"""Tokens to numbers, as whole words or as pieces."""

import collections
from collections.abc import Iterable, Sequence
from pathlib import Path

from features.models.settings import Training
from features.models.subwords import Subwords, learn
from moses_io.errors import InputError
from moses_io.streams import check_plain, numbered_lines, open_output
from moses_io.text import decode, encode

PADDING, UNKNOWN, BEGIN, END = range(4)
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

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the numbers of the tokens or of their pieces, `UNKNOWN` for those that are not known."""
        units = _pieces(tokens, self._subwords) if self._subwords else tokens
        return [self._numbers.get(unit, UNKNOWN) for unit in units]

    def sizes(self, tokens: Sequence[str]) -> list[int]:
        """Return how many numbers each token has."""
        return [len(self._subwords.cut(token)) if self._subwords else 1 for token in tokens]

    def save(self, folder: Path, side: str) -> None:
        """Write `SIDE.vocabulary`, a line a word, without the special ones, and `SIDE.bpe` if there are pieces."""
        with open_output(str(folder / f"{side}.vocabulary")) as stream:
            stream.writelines(encode(f"{word}\n") for word in self.words[len(SPECIAL) :])
        if self._model:
            with open_output(str(folder / f"{side}.bpe")) as stream:
                stream.write(self._model)


def build_vocabulary(sentences: Sequence[Sequence[str]], training: Training) -> Vocabulary:
    """Keep the most frequent words, equals in the order of their bytes; of pieces, all that occur."""
    if training.bpe:
        subwords = learn(sentences, training.bpe)
        return Vocabulary(_frequent((_pieces(tokens, subwords) for tokens in sentences), 1, 0), subwords)
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
    try:
        subwords = Subwords(model.read_bytes())
    except InputError as error:
        raise InputError(f"{model}: {error}") from None
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


def _pieces(tokens: Iterable[str], subwords: Subwords) -> list[str]:
    return [piece for token in tokens for piece in subwords.cut(token)]


def _frequent(sentences: Iterable[Sequence[str]], frequency: int, size: int) -> list[str]:
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    kept = (word for word, count in counts.items() if count >= frequency and _may_be_kept(word))
    words = sorted(kept, key=lambda word: (-counts[word], word))
    return words[:size] if size else words
