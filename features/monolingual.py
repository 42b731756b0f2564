"""Monolingual text of the target language, on which models train in addition to the corpus."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from typing import IO

import numpy as np
from numpy.typing import NDArray

from features.domain import Domain
from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import open_output, open_temporary
from moses_io.files.text import ParallelFiles, decode, encode, input_lines, tokens, without_line_end

MAX_SENTENCE_LENGTH = 80
"""Maximum number of words of a sentence, the default of `max_length` in training."""

LANGUAGE_SAMPLE = 10_000
"""Maximum sentences that are read to identify the language of a text."""

MAX_DOMAIN_SENTENCES = 100_000
"""Maximum sentences of the domain with which other sentences are compared."""

MIN_WORD_RATIO = 0.85
"""Minimum of (words of the text that occur in the target of a corpus) / (words that occur in its source).

It is below 1 because many words occur on both sides if the languages are similar, or the same.
"""

COMPARED_PER_SENTENCE = 10
"""Maximum number of sentences that are compared with the domain, for each sentence that is used."""


@dataclass(frozen=True)
class Selection:
    """The choice of sentences from a monolingual text.

    Attributes:
        max_sentences: maximum number of sentences. From a longer text, the sentences nearest to the domain are used
            (Moore and Lewis 2010). At most `COMPARED_PER_SENTENCE` times as many, evenly spaced, are compared.
            Repeated sentences and sentences of the domain itself are left out.
        excluded: paths of texts whose sentences are left out, such as the references of test sets.
        domain: path of a text of the domain. If it is empty, evenly spaced sentences are used.
    """

    max_sentences: int
    excluded: tuple[str, ...] = ()
    domain: str = ""

    def write(self, text: str, output: str) -> None:
        """Write the sentences of a text, one a line, with one space between words. The text is read twice.

        Args:
            text: path of the text, one tokenized sentence per line.
            output: path of the file to write.

        Raises:
            InputError: a text cannot be read, or no sentence is left.
        """
        excluded = {" ".join(tokens(line)) for path in self.excluded for line in input_lines(path)}
        # References are left out after the choice, so that another reference does not change the other sentences.
        written = left_out = 0
        with open_output(output) as stream:
            for sentence in self._chosen(text, output):
                if sentence in excluded:
                    left_out += 1
                else:
                    written += 1
                    stream.write(encode(f"{sentence}\n"))
            if not written:
                raise InputError(f"{text}: no sentence of 1 to {MAX_SENTENCE_LENGTH} words that is not a reference")
        if left_out:
            log.info(f"{text}: {counted(left_out, 'sentence')} also among the references, left out")

    def _chosen(self, text: str, output: str) -> Iterator[str]:
        """Yield the chosen sentences, also excluded ones, in the order of the text.

        A temporary file is next to `output`.
        """
        count = sum(1 for _ in usable_sentences(text))
        sentences = usable_sentences(text)
        domain = self._domain_sentences() if self.domain and count > self.max_sentences else []
        if not domain:
            yield from _evenly(sentences, count, self.max_sentences)
            return
        sampled = min(count, COMPARED_PER_SENTENCE * self.max_sentences)
        selected = f"at most {self.max_sentences:,} of {sampled:,} sentences are selected"
        log.info(f"{text}: {selected}, the nearest to the training corpus")
        with open_temporary(output) as stream:  # the whole text may be much longer
            stream.writelines(encode(f"{sentence}\n") for sentence in _evenly(sentences, count, sampled))
            nearest = self._nearest(domain, partial(_lines_of, stream), sampled)  # (sampled,)
            yield from compress(_lines_of(stream), nearest)

    def _domain_sentences(self) -> list[str]:
        """Return at most `MAX_DOMAIN_SENTENCES` sentences of the domain, evenly spaced."""
        count = sum(1 for _ in usable_sentences(self.domain))
        return list(_evenly(usable_sentences(self.domain), count, MAX_DOMAIN_SENTENCES))

    def _nearest(self, domain_sentences: list[str], read: Callable[[], Iterator[str]], count: int) -> NDArray[np.bool_]:
        """Return a mask (count,) of the sentences nearest to the domain, without repetitions.

        `domain_sentences` are sentences of the domain, and `read` returns all `count` sentences.
        """
        domain = Domain(domain_sentences, _evenly(read(), count, len(domain_sentences)))
        differences = np.concatenate(list(domain.differences(read())))  # (count,)
        hashes = np.fromiter(map(hash, read()), np.int64, count)  # (count,)
        known = np.isin(hashes, np.fromiter(map(hash, domain_sentences), np.int64, len(domain_sentences)))  # (count,)
        repeated = np.ones(count, dtype=bool)
        repeated[np.unique(hashes, return_index=True)[1]] = False
        differences[known | repeated] = np.inf
        nearest = np.zeros(count, dtype=bool)
        nearest[np.argsort(differences, kind="stable")[: self.max_sentences]] = True
        return nearest & ~(known | repeated)


def check_language(text: str, corpus: ParallelFiles) -> None:
    """Raise `InputError` if a text is more like the source of a corpus than like its target, by shared words."""
    words = Counter(word for sentence in islice(usable_sentences(text), LANGUAGE_SAMPLE) for word in tokens(sentence))
    in_source, in_target = (
        sum(
            words[word]
            for word in {word for line in islice(input_lines(path), LANGUAGE_SAMPLE) for word in tokens(line)}
        )
        for path in (corpus.source, corpus.target)
    )
    if in_target < MIN_WORD_RATIO * in_source:
        source, target = (f"{100 * known / words.total():.0f} %" for known in (in_source, in_target))
        fractions = f"{source} of its words occur in {corpus.source} and {target} in {corpus.target}"
        raise InputError(f"{text}: expected text of the target language, but {fractions}")


def _lines_of(stream: IO[bytes]) -> Iterator[str]:
    """Yield all lines of a file."""
    stream.seek(0)
    for line in stream:
        yield decode(without_line_end(line))


def _evenly(sentences: Iterable[str], count: int, limit: int) -> Iterator[str]:
    """Yield at most `limit` of `count` sentences, evenly spaced."""
    limit = min(limit, count)
    for number, sentence in enumerate(sentences):
        if (number + 1) * limit // count > number * limit // count:
            yield sentence


def usable_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of 1 to `MAX_SENTENCE_LENGTH` words of a text, with one space between words."""
    for line in input_lines(text):
        sentence = tokens(line)
        if 0 < len(sentence) <= MAX_SENTENCE_LENGTH:
            yield " ".join(sentence)
