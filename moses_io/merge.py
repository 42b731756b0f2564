"""Merge the n-best lists of several systems for one text into a single list.

A system computes its features only for its own candidates. The values for candidates of other systems could only be
computed by forced decoding. Instead, all candidates of a sentence that lack a feature get one common value. An
indicator feature for each list records which lists have a candidate, and its weight can compensate for the error of the
common value.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, repeat
from math import fsum, inf
from operator import attrgetter
from pathlib import Path

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.streams import STANDARD, open_output
from moses_io.files.text import encode, tokens
from moses_io.hypothesis import Hypothesis, feature_texts, with_features, with_other_features, with_total
from moses_io.nbest import SentenceList, read_nbest, without_marks

LIST_NAME = re.compile("[A-Za-z][0-9A-Za-z]*")
"""Pattern of a valid list name."""

INDICATOR = "From"
"""Prefix of an indicator: the dense feature `From<list name>`, 1 for candidates of the list and 0 for others."""

DECODER = "Moses"
"""Name of the decoder's list when it is merged with translations of neural models."""

MEAN, LOWEST = "mean", "lowest"

Merged = dict[int, Hypothesis]
"""Lines of one candidate, at most one per list, by the index of the list in ascending order."""


Origins = Counter[tuple[str, ...]]
"""Number of candidates for each combination of lists that have them, as a tuple of list names."""


def describe_origins(names: Sequence[str], origins: Origins) -> str:
    """Return a text with the number of candidates that only this list has, for each list, and that several have."""
    several = sum(count for lists, count in origins.items() if len(lists) > 1)
    single = [f"{origins[(name,)]} only in {name}" for name in names]
    return ", ".join([*single, f"{several} in {'both' if len(names) == 2 else 'several'}"])


class _Summary:
    """Lowest value and mean of each component of a feature over candidates."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._count = 0
        self._sums, self._lowest = [0.0] * size, [inf] * size

    def add(self, rows: Sequence[Sequence[float]]) -> None:
        """Add the values of candidates, (candidates, size)."""
        # fsum rounds once per sentence, so the order of its candidates makes no difference.
        columns = list(zip(*rows, strict=True))
        self._count += len(rows)
        self._sums = [total + fsum(column) for total, column in zip(self._sums, columns, strict=True)]
        self._lowest = [min(lowest, *column) for lowest, column in zip(self._lowest, columns, strict=True)]

    def fill(self, missing: str | float) -> str:
        """Return the values, as text, for a candidate without the feature."""
        if missing == MEAN:
            return " ".join(_shortest(total / self._count) for total in self._sums)
        return " ".join(_shortest(lowest if missing == LOWEST else float(missing)) for lowest in self._lowest)


class _Layout:
    """The dense features of the merged list, ordered by the first list that has them.

    Attributes:
        summaries: for each feature name, lowest value and mean over all lines that have the feature.
        indicators: for each indicator name, the name of its list, in the order of the lists.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.summaries: dict[str, _Summary] = {}
        self.indicators = {f"{INDICATOR}{name}": name for name in names}
        self._known: dict[str, tuple[int, str, int]] = {}

    def add(self, sentence_list: SentenceList) -> None:
        """Add the features of one sentence of a list.

        Raises:
            InputError: a feature has the name of an indicator, or its number of values differs between lists.
        """
        rows = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
        for name, values in sentence_list.hypotheses[0].dense:
            if name in self.indicators:
                fault = f"the list already has a feature {shown(name)}, a name that the merge adds"
                raise InputError(f"{sentence_list.place}: {fault}")
            self._check(name, len(values), sentence_list.path, sentence_list.hypotheses[0].number)
            self.summaries.setdefault(name, _Summary(len(values))).add([row[name] for row in rows])
        for hypothesis in sentence_list.hypotheses:
            for name in hypothesis.sparse:
                self._check(name, 1, sentence_list.path, hypothesis.number)

    def _check(self, name: str, size: int, path: str, number: int) -> None:
        known, other, line = self._known.setdefault(name, (size, path, number))
        if known != size:
            values = counted(size, "value")
            raise InputError(f"{path}:{number}: feature {shown(name)} has {values}, in {other}:{line} it has {known}")


def first_indicator(hypothesis: Hypothesis) -> float | None:
    """Return the indicator of the decoder's list, or if there is none, the first indicator of the line.

    The decoder's indicator is preferred because translations of neural models may be merged with a merged list.

    Returns:
        1 if the list has the candidate, 0 if not, None if the line has no indicator.
    """
    dense = {name: values for name, values in hypothesis.dense if values in ((0.0,), (1.0,))}
    names = (f"{INDICATOR}{DECODER}", *(name for name in dense if name.startswith(INDICATOR)))
    return next((dense[name][0] for name in names if name in dense), None)


def merge_lists(lists: Mapping[str, str], output: str, missing: str | float = LOWEST) -> tuple[int, Origins]:
    """Merge several lists into one and write it, sorted by sentence id.

    * Candidates of different lists with equal tokens become one candidate. Duplicates within one list are kept.
    * Candidates of the first list keep their lines. Appended to the third field are the dense features of later lists,
      the indicators, and the sparse features of later lists.
    * Candidates of later lists follow, with their dense features in the order of the merged list. Their total is the
      lowest total in the first list that has the sentence, so that the 1-best of that decoder has the highest total.

    Plain files are read twice. A list that can be read only once, or whose ids are not in ascending order, is held in
    memory.

    Args:
        lists: path of each list, or `-`, by its name. At least two lists. Names match `LIST_NAME`.
        output: path of the merged list, see `open_output`.
        missing: value of a dense feature for candidates without it. Either a number, or `lowest` or `mean`, computed
            for each component over the candidates of the sentence that have the feature. If no candidate of the
            sentence has it, `lowest` and `mean` are over all lines of the lists. Sparse features are not filled.

    Returns:
        (number of sentences, number of candidates by origin).

    Raises:
        InputError: an invalid name, fewer than two lists, more than one list from stdin, a feature whose number of
            values differs between lists or that has the name of an indicator, or an error of `read_nbest` or
            `without_marks`.
    """
    _check(lists)
    names = tuple(lists)
    layout = _Layout(names)
    # This reads all lists once: the layout must be complete before the first line is written.
    readings = [_ascending(path, layout) for path in lists.values()]
    sentences = 0
    origins = Origins()
    with open_output(output) as stream:
        for parts in _by_sentence(readings):
            candidates = _candidates(parts)
            stream.writelines(_written(candidates, parts, layout, _fills(candidates, layout.summaries, missing)))
            origins.update(tuple(names[index] for index in candidate) for candidate in candidates)
            sentences += 1
    return sentences, origins


def merge_sentence(lists: Mapping[str, SentenceList]) -> Iterator[bytes]:
    """Yield the merged lines of one sentence as `merge_lists` writes them, with the lowest value for missing ones.

    The merged lines have only those dense features that occur in a list of this sentence.

    Args:
        lists: candidates of the sentence in each list, by the name of the list. All but the first may have none.

    Raises:
        InputError: a feature has the name of an indicator, or its number of values differs between lists.
    """
    layout = _Layout(tuple(lists))
    parts = {index: part for index, part in enumerate(lists.values()) if part.hypotheses}
    for part in parts.values():
        layout.add(part)
    candidates = _candidates(parts)
    yield from _written(candidates, parts, layout, _fills(candidates, layout.summaries, LOWEST))


def _check(lists: Mapping[str, str]) -> None:
    if len(lists) < 2:
        raise InputError(f"expected two lists or more, found {len(lists)}")
    for name in lists:
        if not LIST_NAME.fullmatch(name):
            raise InputError(f"list {shown(name)}: expected a name of letters and digits, a letter first")
    if list(lists.values()).count(STANDARD) > 1:
        raise InputError("two lists cannot both come from stdin")


def _ascending(path: str, layout: _Layout) -> Iterator[SentenceList]:
    """Add the sentences of a list to the layout, and return them in ascending order of their ids."""
    cached = None if path != STANDARD and Path(path).is_file() else list(_read(path))
    last, falls = -1, False
    for sentence_list in _read(path) if cached is None else cached:
        layout.add(sentence_list)
        falls |= sentence_list.sentence < last
        last = sentence_list.sentence
    if falls:
        cached = sorted(cached or _read(path), key=attrgetter("sentence"))
    return _read(path) if cached is None else iter(cached)


def _read(path: str) -> Iterator[SentenceList]:
    return without_marks(read_nbest(path))


def _by_sentence(readings: Iterable[Iterator[SentenceList]]) -> Iterator[dict[int, SentenceList]]:
    """Yield, for each sentence, its candidates by the index of the list in ascending order."""
    # heapq.merge is stable, so earlier lists come first within a sentence.
    indexed = [zip(repeat(index), reading) for index, reading in enumerate(readings)]
    for _, group in groupby(merge(*indexed, key=_sentence), key=_sentence):
        yield dict(group)


def _sentence(indexed: tuple[int, SentenceList]) -> int:
    return indexed[1].sentence


def _candidates(parts: Mapping[int, SentenceList]) -> list[Merged]:
    """Return the candidates of a sentence in the order of the lists, without duplicates across lists."""
    texts = {index: [tuple(tokens(each.text)) for each in part.hypotheses] for index, part in parts.items()}
    lines = {
        index: dict(zip(reversed(texts[index]), reversed(part.hypotheses), strict=True))
        for index, part in parts.items()
    }  # reversed, so that the first of several lines with one text wins
    candidates: list[Merged] = []
    for index, part in parts.items():
        for text, hypothesis in zip(texts[index], part.hypotheses, strict=True):
            containing = [other for other in parts if text in lines[other]]
            # A candidate belongs to the first list that has it. Later lists only add features.
            if containing[0] == index:
                candidates.append({other: lines[other][text] for other in containing} | {index: hypothesis})
    return candidates


def _fills(candidates: Sequence[Merged], summaries: Mapping[str, _Summary], missing: str | float) -> dict[str, str]:
    """Return the values, as text, of each dense feature that some candidates of a sentence lack."""
    dense: list[dict[str, tuple[float, ...]]] = []
    for candidate in candidates:
        lines = reversed(candidate.values())  # reversed, so that the values of the first list win
        dense.append({name: values for line in lines for name, values in line.dense})
    fills = {}
    for name, overall in summaries.items():
        rows = [values[name] for values in dense if name in values]
        if len(rows) < len(dense):
            summary = _Summary(overall.size) if rows else overall
            if rows:
                summary.add(rows)
            fills[name] = summary.fill(missing)
    return fills


def _written(
    candidates: Iterable[Merged], parts: Mapping[int, SentenceList], layout: _Layout, fills: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the lines of the candidates of a sentence."""
    first, *_ = parts
    totals = [each.total for each in parts[first].hypotheses if each.total is not None]
    lowest = _shortest(min(totals)) if totals else ""
    for candidate in candidates:
        index, hypothesis = next(iter(candidate.items()))
        features = [encode(f"{name}= {values}") for name, values in _features(candidate, layout, fills).items()]
        if index == 0:
            line = with_features(hypothesis, features)
        else:
            rebuilt = with_other_features(hypothesis, features)
            # Without totals in the first list, a line with three fields gets no empty fourth one.
            keeps_total = index == first or (not lowest and len(rebuilt.fields) == 3)
            line = rebuilt.line if keeps_total else with_total(rebuilt, lowest)
        yield line.removesuffix(b"\n") + b"\n"


def _features(candidate: Merged, layout: _Layout, fills: Mapping[str, str]) -> dict[str, str]:
    """Return the values, as text, of the features of a candidate that its line in the first list lacks."""
    known: dict[str, str] = {}
    existing = {*dict(candidate[0].dense), *candidate[0].sparse} if 0 in candidate else set()
    for hypothesis in candidate.values():
        known |= {name: values for name, values in feature_texts(hypothesis).items() if name not in known}
    dense = {name: known.get(name) or fills[name] for name in layout.summaries if name not in existing}
    indicators = {label: str(int(index in candidate)) for index, label in enumerate(layout.indicators)}
    sparse = {name: values for name, values in known.items() if name not in existing and name not in layout.summaries}
    return dense | indicators | sparse


def _shortest(value: float) -> str:
    """Return the shortest text from which the value can be read back without loss."""
    return repr(value).removesuffix(".0")
