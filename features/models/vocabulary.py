"""Words to numbers."""

import collections
from collections.abc import Iterable, Sequence
from pathlib import Path

from moses_io.errors import InputError
from moses_io.streams import numbered_lines, open_output
from moses_io.text import decode, encode

PADDING, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


class Vocabulary:
    """The words that a model knows, in the order of their numbers; the first four are not words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL, *words)
        self._numbers = {word: number for number, word in enumerate(words, start=len(SPECIAL))}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the number of each token, `UNKNOWN` for those that are not known."""
        return [self._numbers.get(token, UNKNOWN) for token in tokens]

    def save(self, path: Path) -> None:
        """Write the words, one a line, without the special ones."""
        with open_output(str(path)) as stream:
            stream.writelines(encode(f"{word}\n") for word in self.words[len(SPECIAL) :])


def build_vocabulary(sentences: Iterable[Sequence[str]], frequency: int) -> Vocabulary:
    """Keep words seen `frequency` times or more, the most frequent first, equals in the order of their bytes."""
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    kept = (word for word, count in counts.items() if count >= frequency and word not in SPECIAL)
    return Vocabulary(sorted(kept, key=lambda word: (-counts[word], word)))


def load_vocabulary(path: Path) -> Vocabulary:
    """Read what `Vocabulary.save` wrote."""
    words = [decode(line.removesuffix(b"\n")) for _, line in numbered_lines(str(path))]
    if len(set(words)) != len(words):
        raise InputError(f"{path}: a word stands there twice")
    return Vocabulary(words)
