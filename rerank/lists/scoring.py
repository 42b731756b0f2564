"""The walk through a list: its sentences with their sources, and what features make of them, a few at a time."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from features.feature import Resources, Sentence, Steps
from features.feature_set import Column, FeatureSet, Scorer
from features.models.tables import ADDED
from features.progress import log, progress_bar
from features.request import FeatureRequest, split_values
from moses_io.alignment import LinkNumbering
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import LONGEST, Lines, is_live, name_of, open_input, too_long
from moses_io.files.text import (
    LARGEST,
    check_markup,
    decode,
    first_line,
    read_sources,
    tokens,
    without_line_end,
    without_tabs,
)
from moses_io.hypothesis import no_total
from moses_io.list_end import ListEnd
from moses_io.merge import first_indicator
from moses_io.nbest import EmptyLines, SentenceList, check_id, read_nbest, without_marks
from rerank import __version__

BATCH = 10_000
"""Candidates that are scored together, rounded up to whole sentences."""
PATIENCE = 10.0
"""Seconds that a growing source has to bring the line of a sentence whose candidates are there."""


class WholeSources:
    """All lines of a file, read at the start."""

    def __init__(self, path: str | Lines) -> None:
        self._lines = read_sources(path)

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a list's sentence; an `InputError` if there is none."""
        check_id(sentence_list, len(self._lines), "source")
        return self._lines[sentence_list.sentence]

    @property
    def total(self) -> int:
        """How many lines the file has."""
        return len(self._lines)

    def count(self) -> int:
        """Return how many lines the file has."""
        return len(self._lines)


class GrowingSources:
    """Lines of a file or a pipe, read when the list, whose ids go up, comes to their sentence.

    A file that `grows` beside a live list may bring a line some seconds late.
    """

    total: int | None = None

    def __init__(self, stream: BinaryIO, path: str, grows: bool) -> None:
        self._stream, self._path, self._grows = stream, path, grows
        self._read, self._last = 0, ""

    def line(self, sentence_list: SentenceList) -> str:
        """Return the source of a list's sentence; an `InputError` if there is none."""
        while self._read <= sentence_list.sentence and self._next(PATIENCE if self._grows else 0):
            pass
        check_id(sentence_list, self._read, "source")
        return self._last

    def count(self) -> int:
        """Read to the end and return how many lines there are."""
        while self._next(0):
            pass
        return self._read

    def _next(self, patience: float) -> bool:
        """Read one more line, waited for so many seconds, and return whether there is one."""
        line, end = b"", time.monotonic() + patience
        while not line.endswith(b"\n"):
            part = self._stream.readline(LONGEST + 1)
            line += part
            if len(line) > LONGEST:
                raise too_long(self._path, self._read + 1)
            if not part and time.monotonic() >= end:
                break
            if not part:
                time.sleep(0.02)
        if not line:
            return False
        text = decode(without_line_end(line)) if self._read else first_line(line, self._path)
        self._read, self._last = self._read + 1, without_tabs(text)
        check_markup(self._path, [self._last], self._read)
        return True


Sources = WholeSources | GrowingSources
"""Source sentences by their ids."""


@contextlib.contextmanager
def open_sources(path: str | Lines, nbest: str | Lines) -> Iterator[Sources]:
    """Open the source of a list whose ids go up; it may grow where the list comes from a pipe."""
    if isinstance(path, Lines):
        yield WholeSources(path)
        return
    with open_input(path) as stream:
        yield GrowingSources(stream, path, grows=is_live(nbest) and os.path.isfile(path))


def load_features(requests: Sequence[FeatureRequest], resources: Resources, journal: str = "") -> FeatureSet:
    """Make the features of some requests, and tell what they are."""
    features = FeatureSet(requests, resources, journal)
    tell_signatures(features)
    return features


def tell_signatures(features: Scorer) -> None:
    """Tell what the features are."""
    for label, signature in features.signatures.items():
        log.info(f"{label} = {signature}|version:{__version__}")


def score_list(
    nbest: str | Lines,
    sources: Sources,
    features: Scorer,
    at_once: int = 0,
    check: Callable[[SentenceList], None] = lambda _: None,
    prepare: Callable[[list[Sentence]], list[Sentence]] = lambda sentences: sentences,
) -> Iterator[tuple[list[Sentence], list[Column]]]:
    """Yield some sentences after the other with the values of all features, `at_once` sentences at most; 0 for any.

    `check` sees the first sentence before anything is scored; what `prepare` makes of sentences is scored.

    Raises:
        InputError: a label that the list has already, an id beyond the source, or a value that is not finite.
    """
    steps, scored, started = Steps(), 0, time.monotonic()
    sentences_read = read_sentences(nbest, sources, "the scored list", list(features.signatures), at_once, check)
    with progress_bar("score", sources.total) as bar:
        for sentences, result in features.score_all(map(prepare, sentences_read)):
            for column in result.columns:
                _check(column, sentences)
            yield sentences, result.columns
            steps = steps.plus(result.steps)
            scored += sum(len(each.hypotheses) for each in sentences)
            rate = f"{scored / (time.monotonic() - started):,.0f} candidates/s"
            saved = f", {1 - steps.taken / steps.alone:.0%} of the steps saved" if steps.alone else ""
            bar.advance(len(sentences), rate + saved)
    features.end()


def read_sentences(
    nbest: str | Lines,
    sources: Sources,
    becomes: str,
    labels: Sequence[str] = (),
    at_once: int = 0,
    check: Callable[[SentenceList], None] = lambda _: None,
) -> Iterator[list[Sentence]]:
    """Yield the sentences of a list with their sources, in groups of some `BATCH` candidates.

    The sources of a group are read when all of its candidates are there: a source that grows may lag behind the list.

    Args:
        nbest: the list.
        sources: of its sentences.
        becomes: what the list becomes, for a warning that empty lines are no part of that.
        labels: of features that the list must not have yet.
        at_once: sentences of a group, at most; 0 for any.
        check: sees the first sentence.

    Raises:
        InputError: one of the labels, or an id beyond the source.
    """
    empty, end, numbering = EmptyLines(), ListEnd(), LinkNumbering()
    batch: list[SentenceList] = []
    size = 0
    for number, sentence_list in enumerate(without_marks(end.follow(read_nbest(nbest, empty)))):
        if not number:
            check(sentence_list)
        check_labels(sentence_list, labels)
        batch.append(sentence_list)
        size += len(sentence_list.hypotheses)
        if size >= BATCH or len(batch) == at_once:
            yield [_sentence(each, sources, numbering) for each in batch]
            batch, size = [], 0
    if batch:
        yield [_sentence(each, sources, numbering) for each in batch]
    if empty.count:
        log.warning(f"{name_of(nbest)}: {empty}, which {becomes} does not have")
    if cut := end.cut():
        log.warning(f"{name_of(nbest)}:{cut}")


def written(columns: Sequence[Column]) -> Iterator[list[bytes]]:
    """Yield the features of each candidate as a list has them."""
    for row in range(len(columns[0].values)):
        yield [f"{label}= {' '.join(f'{value:.9g}' for value in values[row])}".encode() for label, values in columns]


def check_labels(sentence_list: SentenceList, labels: Sequence[str]) -> None:
    """Refuse labels that the list has already."""
    for name, _ in sentence_list.hypotheses[0].dense:
        if name in labels:
            hint = "`rerank` takes a list that is scored, a new feature needs another label"
            raise InputError(f"{sentence_list.place}: the list already has a feature {shown(name)}; {hint}")


def check_total(sentence_list: SentenceList, requests: Mapping[str, FeatureRequest]) -> None:
    """Refuse features that need a total where a line has none."""
    needing = [label for label, request in requests.items() if request.row.total]
    for hypothesis in sentence_list.hypotheses if needing else ():
        if hypothesis.total is None:
            fault = f"{no_total(hypothesis)}, which feature {shown(needing[0])} needs"
            raise InputError(f"{name_of(sentence_list.path)}:{hypothesis.number}: {fault}; name [features] without it")


def check_joined(sentence_list: SentenceList, requests: Mapping[str, FeatureRequest]) -> None:
    """Refuse features of what was added to a list, where no lists were joined."""
    joined = first_indicator(sentence_list.hypotheses[0]) is not None
    for label, request in requests.items():
        if request.row.takes == "models" and ADDED in split_values(request.argument)[1] and not joined:
            hint = "name `candidates` at a model, or leave it away"
            raise InputError(f"feature {shown(label)}: the value '{ADDED}' is for joined lists; {hint}")


def _check(column: Column, sentences: Sequence[Sentence]) -> None:
    """Refuse values that are not numbers as a list has them."""
    label, values = column
    good = (np.abs(values) <= LARGEST).all(axis=1)  # (candidates,)
    if not good.all():
        places = [each.place(line) for each in sentences for line in each.lines]
        fault = f"not finite, or larger than {LARGEST:.2g}, the largest number of Moses"
        raise InputError(f"{places[int(np.argmin(good))]}: feature '{label}': {fault}")


def _sentence(sentence_list: SentenceList, sources: Sources, numbering: LinkNumbering) -> Sentence:
    """Return a sentence of a list with its tokens, and add its lines to the numbering of the list."""
    source = tuple(tokens(sources.line(sentence_list)))
    known: dict[str, str] = {}  # candidates share the strings of their words, which take most memory
    hypotheses = tuple(
        tuple(known.setdefault(token, token) for token in tokens(hypothesis.text))
        for hypothesis in sentence_list.hypotheses
    )
    numbering.add_sentence(sentence_list.hypotheses)
    return Sentence(
        sentence=sentence_list.sentence,
        source=source,
        hypotheses=hypotheses,
        lines=sentence_list.hypotheses,
        path=sentence_list.path,
        counts_marks=numbering.counts_marks,
    )
