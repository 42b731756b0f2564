"""Lists of several systems for the same sentences become one, in which each candidate says which lists have it.

A system knows only its own features of its own candidates. What it would say of another one's only forced decoding by
that system could tell; here a value stands for it that is the same for all such candidates of a sentence, and an
indicator of each list, whose weight takes up by how much that value is off.
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
"""What a list may be called."""

INDICATOR = "From"
"""Before the name of a list: the dense feature that is 1 for a candidate that the list has, and 0 for others."""

DECODER = "Moses"
"""What the decoder's own list is called beside translations of models."""

MEAN, LOWEST = "mean", "lowest"

Candidate = dict[int, Hypothesis]
"""The line of a candidate in each list that has it, by the place of the list, the first one first."""


Origins = Counter[tuple[str, ...]]
"""Candidates by the names of the lists that have them, in the order of the lists."""


def describe_origins(names: Sequence[str], origins: Origins) -> str:
    """Return how many candidates only one list has, of all lists by their names, and how many several have."""
    several = sum(count for having, count in origins.items() if len(having) > 1)
    alone = [f"{origins[(name,)]} of {name} alone" for name in names]
    return ", ".join([*alone, f"{several} of {'both' if len(names) == 2 else 'several'}"])


class _Spread:
    """The lowest value and the mean of each component of a feature, over some candidates."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._count = 0
        self._sums, self._lowest = [0.0] * size, [inf] * size

    def add(self, rows: Sequence[Sequence[float]]) -> None:
        """Add candidates, each with `size` values; their order makes no difference."""
        columns = list(zip(*rows, strict=True))
        self._count += len(rows)
        self._sums = [total + fsum(column) for total, column in zip(self._sums, columns, strict=True)]
        self._lowest = [min(lowest, *column) for lowest, column in zip(self._lowest, columns, strict=True)]

    def fill(self, missing: str | float) -> str:
        """Return the values that stand for those of a candidate without the feature."""
        if missing == MEAN:
            return " ".join(_shortest(total / self._count) for total in self._sums)
        return " ".join(_shortest(lowest if missing == LOWEST else float(missing)) for lowest in self._lowest)


class _Layout:
    """The dense features that all lines of the merged list have, in their order: of each list what earlier ones lack.

    Attributes:
        spreads: by name, the values of a feature over all lines that have it.
        indicators: names of the lists by those of the indicators, in the order of the lists.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.spreads: dict[str, _Spread] = {}
        self.indicators = {f"{INDICATOR}{name}": name for name in names}
        self._known: dict[str, tuple[int, str, int]] = {}

    def add(self, sentence_list: SentenceList) -> None:
        """Add the features of a sentence of a list.

        Raises:
            InputError: a feature has the name of an indicator, or another number of values than in another list.
        """
        rows = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
        for name, values in sentence_list.hypotheses[0].dense:
            if name in self.indicators:
                fault = f"the list already has a feature {shown(name)}, as the merge calls one of its own"
                raise InputError(f"{sentence_list.place}: {fault}")
            self._check(name, len(values), sentence_list.path, sentence_list.hypotheses[0].number)
            self.spreads.setdefault(name, _Spread(len(values))).add([row[name] for row in rows])
        for hypothesis in sentence_list.hypotheses:
            for name in hypothesis.sparse:
                self._check(name, 1, sentence_list.path, hypothesis.number)

    def _check(self, name: str, size: int, path: str, number: int) -> None:
        known, other, line = self._known.setdefault(name, (size, path, number))
        if known != size:
            values = counted(size, "value")
            raise InputError(f"{path}:{number}: feature {shown(name)} has {values}, in {other}:{line} it has {known}")


def first_indicator(hypothesis: Hypothesis) -> float | None:
    """Return that of the decoder's list, or else of the first list: 1 if it has the candidate, 0 if not, None for none.

    Translations of models may join a list that was joined before.
    """
    dense = {name: values for name, values in hypothesis.dense if values in ((0.0,), (1.0,))}
    names = (f"{INDICATOR}{DECODER}", *(name for name in dense if name.startswith(INDICATOR)))
    return next((dense[name][0] for name in names if name in dense), None)


def merge_lists(lists: Mapping[str, str], output: str, missing: str | float = LOWEST) -> tuple[int, Origins]:
    """Write one list of all candidates of several lists, sentences in the order of their ids.

    Return the number of sentences, and the origins of the candidates.

    Candidates of a sentence with the same tokens are one, but for those that one list repeats. Those of the first list
    keep their lines, and get at the end of the third field what only later lists say of them, the indicators and last
    sparse features. Those of later lists follow, with the dense features in the order of the first list. Their total
    is the lowest one of the first list that has the sentence, so that the choice of its decoder has the highest.

    Plain files are read twice. What can be read only once, and a list whose ids do not go up, is held in memory.

    Args:
        lists: path of each list, or `-`, by its name, of letters and digits; two at least.
        output: the list to write; see `open_output`.
        missing: what stands for a dense feature that a candidate lacks: a number, or for each component the `lowest`
            value or the `mean` of those candidates of the sentence that have it, or of all lines of the lists where
            none of the sentence has it. Sparse features are not filled.

    Raises:
        InputError: no such names, one list, stdin twice, a feature that has different numbers of values, or the name
            of an indicator; or as `read_nbest` and `without_marks`.
    """
    _check(lists)
    names = tuple(lists)
    layout = _Layout(names)
    readings = [_rising(path, layout) for path in lists.values()]
    sentences = 0
    origins = Origins()
    with open_output(output) as stream:
        for parts in _together(readings):
            candidates = _candidates(parts)
            stream.writelines(_written(candidates, parts, layout, _fills(candidates, layout.spreads, missing)))
            origins.update(tuple(names[place] for place in candidate) for candidate in candidates)
            sentences += 1
    return sentences, origins


def merge_sentence(lists: Mapping[str, SentenceList], missing: str | float = LOWEST) -> Iterator[bytes]:
    """Yield the lines of one sentence in the merged list, of all lists by their names; see `merge_lists`.

    A dense feature has to have a value in some line of the sentence.

    Raises:
        InputError: a feature that has different numbers of values, or the name of an indicator.
    """
    layout, parts = _Layout(tuple(lists)), dict(enumerate(lists.values()))
    for part in parts.values():
        layout.add(part)
    candidates = _candidates(parts)
    yield from _written(candidates, parts, layout, _fills(candidates, layout.spreads, missing))


def _check(lists: Mapping[str, str]) -> None:
    if len(lists) < 2:
        raise InputError(f"expected two lists or more, found {len(lists)}")
    for name in lists:
        if not LIST_NAME.fullmatch(name):
            raise InputError(f"list {shown(name)}: expected a name of letters and digits, a letter first")
    if list(lists.values()).count(STANDARD) > 1:
        raise InputError("two lists cannot both come from stdin")


def _rising(path: str, layout: _Layout) -> Iterator[SentenceList]:
    """Add the sentences of a list to the layout, and return them with ids that go up."""
    held = None if path != STANDARD and Path(path).is_file() else list(_read(path))
    last, falls = -1, False
    for sentence_list in _read(path) if held is None else held:
        layout.add(sentence_list)
        falls |= sentence_list.sentence < last
        last = sentence_list.sentence
    if falls:
        held = sorted(held or _read(path), key=attrgetter("sentence"))
    return _read(path) if held is None else iter(held)


def _read(path: str) -> Iterator[SentenceList]:
    return without_marks(read_nbest(path))


def _together(readings: Iterable[Iterator[SentenceList]]) -> Iterator[dict[int, SentenceList]]:
    """Yield each sentence as the lists have it, by their places, which go up."""
    placed = [zip(repeat(place), reading) for place, reading in enumerate(readings)]
    for _, group in groupby(merge(*placed, key=_sentence), key=_sentence):
        yield dict(group)


def _sentence(placed: tuple[int, SentenceList]) -> int:
    return placed[1].sentence


def _candidates(parts: Mapping[int, SentenceList]) -> list[Candidate]:
    """Return the candidates of a sentence, in the order of the lists."""
    texts = {place: [tuple(tokens(each.text)) for each in part.hypotheses] for place, part in parts.items()}
    lines = {
        place: dict(zip(reversed(texts[place]), reversed(part.hypotheses), strict=True))
        for place, part in parts.items()
    }  # of a text that a list repeats, its first line
    candidates: list[Candidate] = []
    for place, part in parts.items():
        for text, hypothesis in zip(texts[place], part.hypotheses, strict=True):
            having = [other for other in parts if text in lines[other]]
            if having[0] == place:
                candidates.append({other: lines[other][text] for other in having} | {place: hypothesis})
    return candidates


def _fills(candidates: Sequence[Candidate], spreads: Mapping[str, _Spread], missing: str | float) -> dict[str, str]:
    """Return what stands for each dense feature that some candidates of a sentence lack."""
    dense: list[dict[str, tuple[float, ...]]] = []
    for candidate in candidates:
        lines = reversed(candidate.values())  # so that the values of the first list stay
        dense.append({name: values for line in lines for name, values in line.dense})
    fills = {}
    for name, everywhere in spreads.items():
        rows = [values[name] for values in dense if name in values]
        if len(rows) < len(dense):
            spread = _Spread(everywhere.size) if rows else everywhere
            if rows:
                spread.add(rows)
            fills[name] = spread.fill(missing)
    return fills


def _written(
    candidates: Iterable[Candidate], parts: Mapping[int, SentenceList], layout: _Layout, fills: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the lines of the candidates of a sentence."""
    first, *_ = parts
    totals = [each.total for each in parts[first].hypotheses if each.total is not None]
    lowest = _shortest(min(totals)) if totals else ""
    for candidate in candidates:
        place, hypothesis = next(iter(candidate.items()))
        features = [encode(f"{name}= {values}") for name, values in _features(candidate, layout, fills).items()]
        if place == 0:
            line = with_features(hypothesis, features)
        else:
            rebuilt = with_other_features(hypothesis, features)
            line = rebuilt.line if place == first else with_total(rebuilt, lowest)
        yield line.removesuffix(b"\n") + b"\n"


def _features(candidate: Candidate, layout: _Layout, fills: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the features of a candidate, but for those that its line in the first list has."""
    known: dict[str, str] = {}
    own = {*dict(candidate[0].dense), *candidate[0].sparse} if 0 in candidate else set()
    for hypothesis in candidate.values():
        known |= {name: values for name, values in feature_texts(hypothesis).items() if name not in known}
    dense = {name: known.get(name) or fills[name] for name in layout.spreads if name not in own}
    indicators = {label: str(int(place in candidate)) for place, label in enumerate(layout.indicators)}
    sparse = {name: values for name, values in known.items() if name not in own and name not in layout.spreads}
    return dense | indicators | sparse


def _shortest(value: float) -> str:
    """Return a number in as few digits as it is read back from without loss."""
    return repr(value).removesuffix(".0")
