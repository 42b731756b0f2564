"""Features are computed for a list and appended to its lines, a few sentences at a time."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from features.feature import Resources, Sentence, Steps
from features.feature_set import Column, FeatureSet
from features.progress import note, progress_bar
from features.request import FeatureRequest
from moses_io.errors import InputError
from moses_io.hypothesis import with_features
from moses_io.nbest import SentenceList, check_id, read_hypotheses, read_nbest, without_marks
from moses_io.streams import STANDARD, numbered_lines, open_output
from moses_io.text import read_lines, tokens, without_line_end
from rerank import __version__
from rerank.verification import Sample

BATCH = 10_000
"""Candidates that are scored together, rounded up to whole sentences."""


def add_features(
    nbest: str, source: str, requests: Sequence[FeatureRequest], output: str, resources: Resources, verify: int = 0
) -> None:
    """Write the list with a feature for each request at the end of its third field; all else stays byte for byte.

    With `verify`, that many random candidates are scored again one by one, and the largest difference is told.

    Raises:
        InputError: a label that the list has already, an id beyond the source, or a value that is not finite.
    """
    sample = Sample(verify, random.Random(1))
    features = _load(requests, resources)
    with open_output(output) as stream:
        for sentences, columns in _scored(nbest, source, features):
            lines = [line for each in sentences for line in each.lines]
            pairs = zip(lines, _written(columns), strict=True)
            stream.writelines(with_features(line, values) for line, values in pairs)
            sample.add(sentences, [column.values for column in columns])
    for number, label in enumerate(features.signatures if verify else ()):
        if label in features.of_models:
            size, difference = sample.largest_difference(number, partial(features.alone, label))
            note(f"{label}: {size} candidates scored one by one differ by at most {difference:.2g}")
        else:
            note(f"{label}: not of a model, there is nothing to verify")


def write_features(
    nbest: str, source: str, requests: Sequence[FeatureRequest], output: str, resources: Resources
) -> None:
    """Write the features of a list alone, a line a candidate, for `join_features`; see `add_features`."""
    with open_output(output) as stream:
        for _, columns in _scored(nbest, source, _load(requests, resources)):
            stream.writelines(b" ".join(values) + b"\n" for values in _written(columns))


def join_features(nbest: str, parts: Sequence[str], output: str) -> None:
    """Write the list with the features of some files at the end of its third field.

    Raises:
        InputError: a file that does not have a line for each candidate.
    """
    rows = zip_longest(*(numbered_lines(part) for part in parts), fillvalue=(0, b""))
    with open_output(output) as stream:
        for hypothesis, row in zip_longest(read_hypotheses(nbest), rows):
            features = [without_line_end(line) for _, line in row or ()]
            if hypothesis is None or not features or not all(features):
                raise InputError(f"{', '.join(parts)}: expected a line for each candidate of {nbest}")
            stream.write(with_features(hypothesis, features))


def _load(requests: Sequence[FeatureRequest], resources: Resources) -> FeatureSet:
    features = FeatureSet(requests, resources)
    for label, signature in features.signatures.items():
        note(f"{label} = {signature}|version:{__version__}")
    return features


def _scored(nbest: str, source: str, features: FeatureSet) -> Iterator[tuple[list[Sentence], list[Column]]]:
    """Yield some sentences after the other with the values of all features."""
    if nbest == source == STANDARD:
        raise InputError("list and source cannot both come from stdin")
    sources = read_lines(source)
    steps, scored, started = Steps(), 0, time.monotonic()
    with progress_bar("score", len(sources)) as bar:
        for batch in _batches(without_marks(read_nbest(nbest)), list(features.signatures)):
            sentences = [_sentence(sentence_list, sources) for sentence_list in batch]
            result = features.score(sentences)
            for column in result.columns:
                _check(column, sentences)
            yield sentences, result.columns
            steps = steps.plus(result.steps)
            scored += sum(len(each.hypotheses) for each in sentences)
            rate = f"{scored / (time.monotonic() - started):,.0f} candidates/s"
            saved = f", {1 - steps.taken / steps.alone:.0%} of the steps saved" if steps.alone else ""
            bar.advance(len(batch), rate + saved)
    features.end()


def _written(columns: Sequence[Column]) -> Iterator[list[bytes]]:
    """Yield the features of each candidate as a list has them."""
    for row in range(len(columns[0].values)):
        yield [f"{label}= {' '.join(f'{value:.9g}' for value in values[row])}".encode() for label, values in columns]


def _check(column: Column, sentences: Sequence[Sentence]) -> None:
    """Refuse values that are not finite."""
    label, values = column
    if not np.isfinite(values).all():
        places = [(each.sentence, place) for each in sentences for place, _ in enumerate(each.hypotheses, start=1)]
        sentence, place = places[int(np.argmin(np.isfinite(values).all(axis=1)))]
        raise InputError(f"feature {label!r}, sentence {sentence}: not finite for hypothesis {place}")


def check_labels(sentence_list: SentenceList, labels: Sequence[str]) -> None:
    """Refuse labels that the list has already."""
    for name, _ in sentence_list.hypotheses[0].dense:
        if name in labels:
            raise InputError(f"{sentence_list.place}: the list already has a feature {name!r}; name another label")


def _batches(lists: Iterable[SentenceList], labels: Sequence[str]) -> Iterator[list[SentenceList]]:
    """Cut a list that has none of the labels yet into groups of whole sentences."""
    batch: list[SentenceList] = []
    size = 0
    for sentence_list in lists:
        check_labels(sentence_list, labels)
        batch.append(sentence_list)
        size += len(sentence_list.hypotheses)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _sentence(sentence_list: SentenceList, sources: Sequence[str]) -> Sentence:
    check_id(sentence_list, len(sources), "source")
    hypotheses = tuple(tuple(tokens(hypothesis.text)) for hypothesis in sentence_list.hypotheses)
    source = tuple(tokens(sources[sentence_list.sentence]))
    return Sentence(sentence_list.sentence, source, hypotheses, sentence_list.hypotheses)
