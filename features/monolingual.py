"""Monolingual text of the target language, on which models train in addition to the corpus."""

from collections.abc import Iterator
from dataclasses import dataclass

from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import open_output
from moses_io.files.text import encode, input_lines, tokens

LONGEST = 80
"""Default of the maximum number of words of a sentence, that of `max_length` in training."""


@dataclass(frozen=True)
class Selection:
    """Which sentences of a monolingual text are used.

    Attributes:
        most: maximum number of sentences. Of a longer text, evenly spaced sentences are used.
        longest: maximum number of words of a sentence. Longer sentences and empty lines are left out.
        excluded: paths of texts whose sentences are left out, such as the references of test sets.
    """

    most: int
    longest: int = LONGEST
    excluded: tuple[str, ...] = ()

    def write(self, text: str, output: str) -> None:
        """Write the sentences of a text, one a line, with one space between words. The text is read twice.

        Args:
            text: path of the text, one tokenized sentence per line.
            output: path of the file to write.

        Raises:
            InputError: the text cannot be read, or no sentence is left.
        """
        excluded = {" ".join(tokens(line)) for path in self.excluded for line in input_lines(path)}
        # References are left out after the choice, so that another reference does not change the other sentences.
        count, left_out = sum(1 for _ in usable_sentences(text, self.longest)), 0
        most = min(self.most, count)
        with open_output(output) as stream:
            for number, sentence in enumerate(usable_sentences(text, self.longest)):
                if (number + 1) * most // count == number * most // count:
                    continue
                if sentence in excluded:
                    left_out += 1
                else:
                    stream.write(encode(f"{sentence}\n"))
            if left_out == most:
                raise InputError(f"{text}: no sentence of 1 to {self.longest} words that is not a reference")
        if left_out:
            log.info(f"{text}: {counted(left_out, 'sentence')} also among the references, left out")


def usable_sentences(text: str, longest: int = LONGEST) -> Iterator[str]:
    """Yield the sentences of a text that are neither empty nor longer, with one space between words."""
    for line in input_lines(text):
        sentence = tokens(line)
        if 0 < len(sentence) <= longest:
            yield " ".join(sentence)
