"""Scoring: read the sentences of a list with their sources and compute feature values, a few sentences at a time."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from features.feature import Resources, Sentence, Steps
from features.feature_set import Column, FeatureSet, Scorer
from features.progress import log, progress_bar
from features.request import FeatureRequest
from moses_io.alignment import LinkNumbering
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import MAX_LINE_BYTES, Lines, is_live, name_of, open_input, too_long
from moses_io.files.text import (
    LIMIT,
    MAX_VALUE,
    check_markup,
    decode,
    first_line,
    read_sources,
    tokens,
    without_line_end,
    without_tabs,
)
from moses_io.input_filters import UNFILTERED, InputFilters
from moses_io.list_end import ListEnd
from moses_io.nbest import EmptyLines, SentenceList, check_id, read_nbest, without_marks
from rerank import __version__

BATCH = 10_000
"""Number of candidates that are scored together, rounded up to whole sentences."""
SOURCE_TIMEOUT = 10.0
"""Maximum seconds to wait for a source line when the candidates of its sentence have already arrived."""


class WholeSources:
    """Source sentences of a file that is read completely at the start."""

    def __init__(self, path: str | Lines) -> None:
        self._lines = read_sources(path)

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a sentence. Raises `InputError` if it has none."""
        check_id(sentence_list, len(self._lines), "source")
        return self._lines[sentence_list.sentence]

    @property
    def total(self) -> int:
        """Number of lines."""
        return len(self._lines)

    def count(self) -> int:
        """Return the number of lines."""
        return len(self._lines)


class GrowingSources:
    """Source sentences of a file or a pipe, each read when the list reaches its sentence. Ids must increase.

    If the file `grows` while a live list is read, wait up to `SOURCE_TIMEOUT` seconds for a line.

    Attributes:
        total: None, as the number of lines is not known before the end.
    """

    total: int | None = None

    def __init__(self, stream: BinaryIO, path: str, grows: bool) -> None:
        self._stream, self._path, self._grows = stream, path, grows
        self._read, self._last = 0, ""

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a sentence. Raises `InputError` if it has none."""
        while self._read <= sentence_list.sentence and self._next(SOURCE_TIMEOUT if self._grows else 0):
            pass
        check_id(sentence_list, self._read, "source")
        return self._last

    def count(self) -> int:
        """Read to the end and return the number of lines."""
        while self._next(0):
            pass
        return self._read

    def _next(self, patience: float) -> bool:
        """Read the next line, waiting up to `patience` seconds, and return whether one was read."""
        line, end = b"", time.monotonic() + patience
        while not line.endswith(b"\n"):
            part = self._stream.readline(MAX_LINE_BYTES + 1)
            line += part
            if len(line) > MAX_LINE_BYTES:
                raise too_long(self._path, self._read + 1)
            if not part and time.monotonic() >= end:
                break
            if not part:  # end of file for now: the writer may append more
                time.sleep(0.02)
        if not line:
            return False
        text = decode(without_line_end(line)) if self._read else first_line(line, self._path)
        self._read, self._last = self._read + 1, without_tabs(text)
        check_markup(self._path, [self._last], self._read)
        return True


Sources = WholeSources | GrowingSources
"""Source sentences by sentence id."""


@contextlib.contextmanager
def open_sources(path: str | Lines, nbest: str | Lines) -> Iterator[Sources]:
    """Open the source of a list with increasing ids. If the list comes from a pipe, a source file may still grow."""
    if isinstance(path, Lines):
        yield WholeSources(path)
        return
    with open_input(path) as stream:
        yield GrowingSources(stream, path, grows=is_live(nbest) and os.path.isfile(path))


def load_features(requests: Sequence[FeatureRequest], resources: Resources, journal: str = "") -> FeatureSet:
    """Return the requested features and log their signatures."""
    features = FeatureSet(requests, resources, journal)
    log_signatures(features)
    return features


def log_signatures(features: Scorer) -> None:
    """Log the signature of each feature."""
    for label, signature in features.signatures.items():
        log.info(f"{label} = {signature}|version:{__version__}")


def score_list(
    nbest: str | Lines,
    sources: Sources,
    features: Scorer,
    max_sentences: int = 0,
    check: Callable[[SentenceList], None] = lambda _: None,
    prepare: Callable[[list[Sentence]], list[Sentence]] = lambda sentences: sentences,
    filters: InputFilters = UNFILTERED,
) -> Iterator[tuple[list[Sentence], list[Column]]]:
    """Yield the sentences of a list, in groups, with the values of all features.

    Args:
        nbest: the list.
        sources: its source sentences.
        features: features to compute.
        max_sentences: maximum number of sentences per group, 0 for no limit.
        check: called with the first sentence before anything is scored.
        prepare: applied to each group of sentences before it is scored.
        filters: filters for sources and candidates.

    Raises:
        InputError: the list already has a requested label, a sentence id is beyond the source, or a value is not
            finite.
    """
    labels = list(features.signatures)
    sentences_read = read_sentences(nbest, sources, "the scored list", labels, max_sentences, check, filters)
    yield from score_sentences(map(prepare, sentences_read), features, sources.total)


def score_sentences(
    groups: Iterable[list[Sentence]], features: Scorer, total: int | None
) -> Iterator[tuple[list[Sentence], list[Column]]]:
    """Yield groups of sentences with the values of all features.

    Args:
        groups: the groups.
        features: features to compute.
        total: number of all sentences, or None if it is not known.

    Raises:
        InputError: a value is not finite.
    """
    steps, scored, started = Steps(), 0, time.monotonic()
    with progress_bar("score", total, whole=True) as bar:
        for sentences, result in features.score_all(groups):
            for column in result.columns:
                _check(column, sentences)
            yield sentences, result.columns
            steps = steps.plus(result.steps)
            scored += sum(len(each.hypotheses) for each in sentences)
            rate = f"{scored / (time.monotonic() - started):,.0f} candidates/s"
            saved = f", {1 - steps.computed / steps.separate:.0%} of the steps saved" if steps.separate else ""
            bar.advance(len(sentences), rate + saved, result.stored)
    features.end()


def read_sentences(
    nbest: str | Lines,
    sources: Sources,
    output_name: str,
    labels: Sequence[str] = (),
    max_sentences: int = 0,
    check: Callable[[SentenceList], None] = lambda _: None,
    filters: InputFilters = UNFILTERED,
) -> Iterator[list[Sentence]]:
    """Yield the sentences of a list with their sources, in groups of about `BATCH` candidates.

    The sources of a group are read after all its candidates, as a source that is still written may lag behind.

    Args:
        nbest: the list.
        sources: its source sentences.
        output_name: name of the output, used in the warning that it lacks the empty lines of the list.
        labels: feature labels that the list must not have yet.
        max_sentences: maximum number of sentences per group, 0 for no limit.
        check: called with the first sentence.
        filters: filters for sources and candidates.

    Raises:
        InputError: the list already has one of the labels, or a sentence id is beyond the source.
    """
    empty, end, numbering = EmptyLines(), ListEnd(), LinkNumbering()
    batch: list[SentenceList] = []
    size = 0
    lists = filters.filter_lists(without_marks(end.follow(read_nbest(nbest, empty))))
    for number, sentence_list in enumerate(lists):
        if not number:
            check(sentence_list)
        check_labels(sentence_list, labels)
        batch.append(sentence_list)
        size += len(sentence_list.hypotheses)
        if size >= BATCH or len(batch) == max_sentences:
            yield [_sentence(each, sources, numbering, filters) for each in batch]
            batch, size = [], 0
    if batch:
        yield [_sentence(each, sources, numbering, filters) for each in batch]
    if empty.count:
        log.warning(f"{name_of(nbest)}: {empty}, which {output_name} does not have")
    if cut := end.cut():
        log.warning(f"{name_of(nbest)}:{cut}")


def written(columns: Sequence[Column]) -> Iterator[list[bytes]]:
    """Yield the features of each candidate, formatted as in an n-best list."""
    for row in range(len(columns[0].values)):
        yield [f"{label}= {' '.join(f'{value:.9g}' for value in values[row])}".encode() for label, values in columns]


def check_labels(sentence_list: SentenceList, labels: Sequence[str]) -> None:
    """Raise `InputError` if the list already has a feature with one of the labels."""
    for name, _ in sentence_list.hypotheses[0].dense:
        if name in labels:
            hint = "Use `rerank` for a list that is already scored, or choose another label for a new feature"
            raise InputError(f"{sentence_list.place}: the list already has a feature {shown(name)}. {hint}")


def _check(column: Column, sentences: Sequence[Sentence]) -> None:
    """Raise `InputError` if a value is not finite or too large for Moses."""
    label, values = column
    valid = (np.abs(values) <= MAX_VALUE).all(axis=1)  # (candidates,)
    if not valid.all():
        locations = [each.place(line) for each in sentences for line in each.lines]
        fault = f"not finite, or an absolute value exceeds {LIMIT}"
        raise InputError(f"{locations[int(np.argmin(valid))]}: feature '{label}': {fault}")


def _sentence(
    sentence_list: SentenceList, sources: Sources, numbering: LinkNumbering, filters: InputFilters
) -> Sentence:
    """Return a sentence with its tokens, and add its word alignments to `numbering`."""
    source = tuple(tokens(filters(sources.line(sentence_list))))
    interned: dict[str, str] = {}  # equal tokens of all candidates share one string: strings take most of the memory
    hypotheses = tuple(
        tuple(interned.setdefault(token, token) for token in tokens(hypothesis.text))
        for hypothesis in sentence_list.hypotheses
    )
    numbering.add_sentence(sentence_list.hypotheses)
    return Sentence(
        sentence=sentence_list.sentence,
        source=source,
        hypotheses=hypotheses,
        lines=sentence_list.hypotheses,
        path=sentence_list.path,
        counts_bos_eos=numbering.counts_bos_eos,
    )
