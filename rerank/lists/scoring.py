"""Features say what they make of a list, a few sentences at a time."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from features.feature import Resources, Sentence, Steps
from features.feature_set import Column, FeatureSet, Scorer
from features.models.tables import ADDED
from features.progress import log, progress_bar
from features.request import FeatureRequest, split_values
from moses_io.alignment import LinkNumbering
from moses_io.errors import InputError, shown
from moses_io.hypothesis import no_total
from moses_io.list_end import ListEnd
from moses_io.merge import first_indicator
from moses_io.nbest import EmptyLines, SentenceList, read_nbest, without_marks
from moses_io.streams import Lines, name_of
from moses_io.text import LARGEST, tokens
from rerank import __version__
from rerank.lists.sources import Sources

BATCH = 10_000
"""Candidates that are scored together, rounded up to whole sentences."""


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
    steps, scored, started, empty, end = Steps(), 0, time.monotonic(), EmptyLines(), ListEnd()
    numbering = LinkNumbering()
    with progress_bar("score", sources.total) as bar:
        lists = without_marks(end.follow(read_nbest(nbest, empty)))
        batches = (
            prepare([_sentence(each, sources, numbering) for each in batch])
            for batch in _batches(lists, list(features.signatures), at_once, check)
        )
        for sentences, result in features.score_all(batches):
            for column in result.columns:
                _check(column, sentences)
            yield sentences, result.columns
            steps = steps.plus(result.steps)
            scored += sum(len(each.hypotheses) for each in sentences)
            rate = f"{scored / (time.monotonic() - started):,.0f} candidates/s"
            saved = f", {1 - steps.taken / steps.alone:.0%} of the steps saved" if steps.alone else ""
            bar.advance(len(sentences), rate + saved)
    features.end()
    if empty.count:
        log.warning(f"{name_of(nbest)}: {empty}, which the scored list does not have")
    _warn_of_cut(end, nbest)


def read_sentences(nbest: str, sources: Sources) -> Iterator[list[Sentence]]:
    """Yield the sentences of a list with their sources, some after the other."""
    empty, end, numbering = EmptyLines(), ListEnd(), LinkNumbering()
    for batch in _batches(without_marks(end.follow(read_nbest(nbest, empty))), [], 0, lambda _: None):
        yield [_sentence(sentence_list, sources, numbering) for sentence_list in batch]
    if empty.count:
        log.warning(f"{name_of(nbest)}: {empty}, which the list with more candidates does not have")
    _warn_of_cut(end, nbest)


def _warn_of_cut(end: ListEnd, nbest: str | Lines) -> None:
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


def _batches(
    lists: Iterable[SentenceList], labels: Sequence[str], at_once: int, check: Callable[[SentenceList], None]
) -> Iterator[list[SentenceList]]:
    """Cut a list that has none of the labels yet into groups of whole sentences; `check` sees the first."""
    batch: list[SentenceList] = []
    size = 0
    for number, sentence_list in enumerate(lists):
        if not number:
            check(sentence_list)
        check_labels(sentence_list, labels)
        batch.append(sentence_list)
        size += len(sentence_list.hypotheses)
        if size >= BATCH or len(batch) == at_once:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


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
