"""Monolingual text of the target language, from which models learn beside the corpus."""

from collections.abc import Iterator
from dataclasses import dataclass

from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import open_output
from moses_io.files.text import encode, input_lines, tokens

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """Which sentences of a monolingual text are used.

    Attributes:
        most: maximum number of sentences. Of a longer text, evenly spaced sentences are used.
        longest: maximum number of words of a sentence. Longer sentences and empty lines are left out.
        excluded: paths of texts whose sentences are left out, such as the references of test sets.
    """

    most: int
    longest: int
    excluded: tuple[str, ...] = ()

    def write(self, text: str, output: str) -> None:
        """Write the sentences of a text, one a line, with one space between words. The text is read twice.

        Args:
            text: path of the text, one tokenized sentence per line.
            output: path of the file to write.

        Raises:
            InputError: the text cannot be read, or no sentence is left.
        """
        excluded = {tuple(tokens(line)) for path in self.excluded for line in input_lines(path)}
        count = left_out = 0
        for sentence in self._usable(text):
            known = sentence in excluded
            count, left_out = count + (not known), left_out + known
        if not count:
            raise InputError(f"{text}: no sentence of 1 to {self.longest} words that is not a reference")
        if left_out:
            log.info(f"{text}: {counted(left_out, 'sentence')} also among the references, left out")
        most = min(self.most, count)
        allowed = (sentence for sentence in self._usable(text) if sentence not in excluded)
        with open_output(output) as stream:
            for number, sentence in enumerate(allowed):
                if (number + 1) * most // count > number * most // count:
                    stream.write(encode(f"{' '.join(sentence)}\n"))

    def _usable(self, text: str) -> Iterator[Tokens]:
        for line in input_lines(text):
            sentence = tuple(tokens(line))
            if 0 < len(sentence) <= self.longest:
                yield sentence
