"""Monolingual text of the target language."""

from collections.abc import Iterator
from dataclasses import dataclass

from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.text import input_lines, tokens

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class MonolingualText:
    """Sentences of a text in the target language.

    Attributes:
        path: the text, one tokenized sentence per line.
        most: maximum number of sentences. Of a longer text, evenly spaced sentences are used.
        longest: maximum number of words of a sentence. Longer sentences and empty lines are left out.
        excluded: paths of texts whose sentences are left out, such as the references of test sets.
    """

    path: str
    most: int
    longest: int
    excluded: tuple[str, ...] = ()

    def sentences(self) -> list[Tokens]:
        """Return the sentences. The text is read twice, so that only they are in memory.

        Raises:
            InputError: the text cannot be read, or no sentence is left.
        """
        excluded = {tuple(tokens(line)) for path in self.excluded for line in input_lines(path)}
        found = left_out = 0
        for sentence in self._usable():
            known = sentence in excluded
            left_out, found = left_out + known, found + (not known)
        if not found:
            raise InputError(f"{self.path}: no sentence of 1 to {self.longest} words that is not a reference")
        if left_out:
            log.info(f"{self.path}: {counted(left_out, 'sentence')} also among the references, left out")
        allowed = (sentence for sentence in self._usable() if sentence not in excluded)
        most = min(self.most, found)
        return [each for number, each in enumerate(allowed) if (number + 1) * most // found > number * most // found]

    def _usable(self) -> Iterator[Tokens]:
        for line in input_lines(self.path):
            sentence = tuple(tokens(line))
            if 0 < len(sentence) <= self.longest:
                yield sentence
