"""Compute features for an n-best list and append them to its lines, a few sentences at a time."""

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import Scorer
from features.progress import log, progress_bar
from features.request import FeatureRequest
from moses_io.files.errors import InputError
from moses_io.files.streams import STANDARD, hidden, numbered_lines, open_output
from moses_io.files.text import without_line_end
from moses_io.hypothesis import with_features
from moses_io.input_filters import UNFILTERED, InputFilters
from moses_io.nbest import read_hypotheses
from rerank.lists.scoring import WholeSources, load_features, log_signatures, score_list, written


def add_features(
    nbest: str,
    source: str,
    requests: Sequence[FeatureRequest],
    output: str,
    resources: Resources,
    verify: int = 0,
    address: str = "",
    filters: InputFilters = UNFILTERED,
) -> None:
    """Write the list with new features appended to the third field. Without filters, all other bytes stay as they are.

    If an earlier run on the same list was killed, its scores are reused.

    Args:
        nbest: path of the list.
        source: path of the source text.
        requests: features to compute.
        output: path of the new list.
        resources: device and cache settings for the features.
        verify: number of random candidates to score again one by one. The largest difference is logged.
        address: address of a Ray cluster to score on. Empty: score in this process.
        filters: filters for sources and candidates.

    Raises:
        InputError: no feature is requested, the list already has a requested label, a sentence id is beyond the
            source, a value is not finite, or the cluster does not exist.
    """
    if not requests:
        raise InputError("expected at least one feature to score, found none")
    sample = Sample(verify, random.Random(1))
    with _journal(output) as journal, _loaded(requests, resources, journal, address) as features:
        with open_output(output) as stream:
            for sentences, columns in score_list(nbest, WholeSources(source), features, filters=filters):
                lines = [line for each in sentences for line in each.lines]
                pairs = zip(lines, written(columns), strict=True)
                stream.writelines(with_features(line, values) for line, values in pairs)
                if verify:
                    sample.add(sentences, [column.values for column in columns])
        if verify:
            _verify(sample, features)


class Sample:
    """Uniform random sample of up to `size` candidates of a list, with their feature values.

    Reservoir sampling (Vitter 1985, algorithm R): one pass over the list, whose length need not be known.
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size, self._rng, self._seen = size, rng, 0
        self._sample: list[tuple[Sentence, list[Array]]] = []

    def add(self, sentences: Sequence[Sentence], columns: Sequence[Array]) -> None:
        """Offer the candidates of some sentences to the sample.

        Args:
            sentences: sentences with N candidates in total.
            columns: (N, values) values of each feature.
        """
        row = 0
        for sentence in sentences:
            for number, hypothesis in enumerate(sentence.hypotheses):
                self._seen += 1
                slot = len(self._sample) if len(self._sample) < self._size else self._rng.randrange(self._seen)
                if slot < self._size:
                    # A sentence with a single candidate, so that it can be scored alone.
                    single = replace(sentence, hypotheses=(hypothesis,), lines=sentence.lines[number : number + 1])
                    self._sample[slot : slot + 1] = [(single, [values[row].copy() for values in columns])]
                row += 1

    def largest_difference(self, number: int, score: Callable[[Sentence], Array]) -> tuple[int, float]:
        """Compare the values of a feature with the values of another scoring function.

        Args:
            number: index of the feature.
            score: returns the values of a sentence with one candidate.

        Returns:
            The size of the sample and the largest absolute difference.
        """
        differences = []
        with progress_bar("verify", len(self._sample)) as bar:
            for single, values in self._sample:
                differences.append(float(np.abs(score(single) - values[number]).max()))
                bar.advance(1, "")
        return len(differences), max(differences, default=0.0)


def _verify(sample: Sample, features: Scorer) -> None:
    """Score the sampled candidates one by one and log the largest difference for each feature of a model."""
    for number, label in enumerate(features.signatures):
        if label in features.whole_lists:
            log.info(f"{label}: needs all candidates of a sentence, nothing to verify")
        elif label in features.of_models:
            size, difference = sample.largest_difference(number, partial(features.score_separately, label))
            log.info(f"{label}: {size} candidates scored one by one differ by at most {difference:.2g}")
        else:
            log.info(f"{label}: not a feature of a model, nothing to verify")


def write_features(
    nbest: str, source: str, requests: Sequence[FeatureRequest], output: str, resources: Resources
) -> None:
    """Write only the features of a list, one line per candidate, as `join_features` reads them.

    Args:
        nbest: path of the list.
        source: path of the source text.
        requests: features to compute.
        output: path of the file of features.
        resources: device and cache settings for the features.

    Raises:
        InputError: the list already has a requested label, a sentence id is beyond the source, or a value is not
            finite.
    """
    with _journal(output) as journal, open_output(output) as stream:
        features = load_features(requests, resources, journal)
        for _, columns in score_list(nbest, WholeSources(source), features):
            stream.writelines(b" ".join(values) + b"\n" for values in written(columns))


def join_features(nbest: str, parts: Sequence[str], output: str) -> None:
    """Write the list with the features of `write_features` files appended to the third field.

    Raises:
        InputError: a file does not have one line for each candidate.
    """
    rows = zip_longest(*(numbered_lines(part) for part in parts), fillvalue=(0, b""))
    with open_output(output) as stream:
        for hypothesis, row in zip_longest(read_hypotheses(nbest), rows):
            features = [without_line_end(line) for _, line in row or ()]
            if hypothesis is None or not features or not all(features):
                raise InputError(f"{', '.join(parts)}: expected a line for each candidate of {nbest}")
            stream.write(with_features(hypothesis, features))


@contextmanager
def _loaded(requests: Sequence[FeatureRequest], resources: Resources, journal: str, address: str) -> Iterator[Scorer]:
    """Load the features in this process or on a cluster and log their signatures."""
    if not address:
        yield load_features(requests, resources, journal)
        return
    from rerank.cluster.features import RemoteFeatures

    with RemoteFeatures(requests, resources, journal, address) as features:
        log_signatures(features)
        yield features


@contextmanager
def _journal(output: str) -> Iterator[str]:
    """Yield the folder that keeps the scores so far, next to the output file.

    The folder is deleted once the output is complete. After an error it stays, so that the next run can resume. If the
    output is stdout or a pipe, there is no such folder and the path is empty.
    """
    target = Path(output)
    if output == STANDARD or (target.exists() and not target.is_file()):
        yield ""
        return
    target = target.resolve()
    folder = target.with_name(f"{hidden(target.name)}.scored")
    if folder.is_symlink():
        raise InputError(f"{folder}: a symbolic link, expected a folder. Remove it")
    yield str(folder)
    shutil.rmtree(folder, ignore_errors=True)
