"""Features are computed for a list and appended to its lines, a few sentences at a time."""

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path

from features.feature import Resources, Sentence
from features.feature_set import Column, Scorer
from features.progress import log
from features.request import FeatureRequest
from moses_io.errors import InputError
from moses_io.hypothesis import with_features
from moses_io.nbest import read_hypotheses
from moses_io.streams import STANDARD, hidden, numbered_lines, open_output
from moses_io.text import without_line_end
from rerank.lists.scoring import load_features, score_list, tell_signatures, written
from rerank.lists.sources import WholeSources
from rerank.lists.verification import Sample


def add_features(
    nbest: str,
    source: str,
    requests: Sequence[FeatureRequest],
    output: str,
    resources: Resources,
    verify: int = 0,
    address: str = "",
) -> None:
    """Write the list with a feature for each request at the end of its third field; all else stays byte for byte.

    With `verify`, that many random candidates are scored again one by one, and the largest difference is told. With the
    address of a Ray cluster, its machines score. What a killed scoring has of the same list is not scored again.

    Raises:
        InputError: no feature, a label that the list has already, an id beyond the source, or a value that is not
            finite; no such cluster.
    """
    if not requests:
        raise InputError("expected a feature or more to score, found none")
    sample = Sample(verify, random.Random(1))
    with _journal(output) as journal, _loaded(requests, resources, journal, address) as features:
        with open_output(output) as stream:
            for sentences, columns in _scored(nbest, source, features):
                lines = [line for each in sentences for line in each.lines]
                pairs = zip(lines, written(columns), strict=True)
                stream.writelines(with_features(line, values) for line, values in pairs)
                sample.add(sentences, [column.values for column in columns])
        if verify:
            _verify(sample, features)


def _verify(sample: Sample, features: Scorer) -> None:
    """Tell by how much values differ from those of candidates one by one."""
    for number, label in enumerate(features.signatures):
        if label in features.of_models:
            size, difference = sample.largest_difference(number, partial(features.alone, label))
            log.info(f"{label}: {size} candidates scored one by one differ by at most {difference:.2g}")
        else:
            log.info(f"{label}: not of a model, there is nothing to verify")


def write_features(
    nbest: str, source: str, requests: Sequence[FeatureRequest], output: str, resources: Resources
) -> None:
    """Write the features of a list alone, a line a candidate, for `join_features`; see `add_features`."""
    with _journal(output) as journal, open_output(output) as stream:
        for _, columns in _scored(nbest, source, load_features(requests, resources, journal)):
            stream.writelines(b" ".join(values) + b"\n" for values in written(columns))


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


@contextmanager
def _loaded(requests: Sequence[FeatureRequest], resources: Resources, journal: str, address: str) -> Iterator[Scorer]:
    """Yield features, in this process or on a cluster, and tell what they are."""
    if not address:
        yield load_features(requests, resources, journal)
        return
    from rerank.cluster.features import RemoteFeatures

    with RemoteFeatures(requests, resources, journal, address) as features:
        tell_signatures(features)
        yield features


def _scored(nbest: str, source: str, features: Scorer) -> Iterator[tuple[list[Sentence], list[Column]]]:
    return score_list(nbest, WholeSources(source), features)


@contextmanager
def _journal(output: str) -> Iterator[str]:
    """Yield the folder, beside a file that is written, of what was scored so far; empty for stdout or a pipe.

    It goes when the file is whole.
    """
    target = Path(output)
    if output == STANDARD or (target.exists() and not target.is_file()):
        yield ""
        return
    target = target.resolve()
    folder = target.with_name(f"{hidden(target.name)}.scored")
    if folder.is_symlink():
        raise InputError(f"{folder}: a symbolic link, expected a folder; remove it")
    yield str(folder)
    shutil.rmtree(folder, ignore_errors=True)
