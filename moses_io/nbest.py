"""Moses' n-best lists.

All lines of a sentence are contiguous. All lines of a list have the same dense features, each with the same number of
values. Sentence ids may have gaps and come in any order, but an id must not occur again after another id.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from moses_io.files.compression import LIST_OVERHEAD
from moses_io.files.errors import Fault, InputError, at, counted, shown
from moses_io.files.streams import Lines, name_of, numbered_lines, open_output
from moses_io.files.text import has_marks, read_lines, without_line_end
from moses_io.hypothesis import Hypothesis, LineParser

MARKS = "segmentation marks such as |0-1| in the text. Decode without -t and -tt (report-segmentation)"


@dataclass(frozen=True, slots=True)
class SentenceList:
    """All candidates of one source sentence, in the order of the file.

    Attributes:
        sentence: id.
        hypotheses: the candidates.
        path: of the list.
        moses_output: translation that the decoder printed, None if unknown. With MBR or consensus decoding it may
            differ from the candidate with the highest total.
    """

    sentence: int
    hypotheses: tuple[Hypothesis, ...]
    path: str
    moses_output: str | None = None

    @property
    def place(self) -> str:
        """File and first line, for messages."""
        return f"{name_of(self.path)}:{self.hypotheses[0].number}"

    @property
    def end(self) -> str:
        """File and last line, for messages."""
        return f"{name_of(self.path)}:{self.hypotheses[-1].number}"

    @property
    def highest_total(self) -> int:
        """Index of the candidate with the highest total, the first one on a tie."""
        totals = [total_or_lowest(hypothesis) for hypothesis in self.hypotheses]
        return totals.index(max(totals))

    def find(self, text: str) -> int | None:
        """Return the index of the candidate with this text, or None.

        Of several candidates with this text, the one with the highest total is returned, the first one on a tie.
        """
        found = [index for index, hypothesis in enumerate(self.hypotheses) if hypothesis.text == text]
        return max(found, key=lambda index: total_or_lowest(self.hypotheses[index]), default=None)

    @property
    def moses_choice(self) -> int | None:
        """Index of the candidate that the decoder printed, or None if no candidate has this text.

        If the decoder's output is unknown, the index of the candidate with the highest total.
        """
        return self.highest_total if self.moses_output is None else self.find(self.moses_output)

    @property
    def moses_text(self) -> str:
        """Translation that the decoder printed, or if unknown, the candidate with the highest total."""
        return self.hypotheses[self.highest_total].text if self.moses_output is None else self.moses_output


def total_or_lowest(hypothesis: Hypothesis) -> float:
    """Return the total of a line, or minus infinity if the line has no total."""
    total = hypothesis.total
    return -math.inf if total is None else total


class Layout:
    """The names and sizes of the dense features of the first line, which all lines of a list must share."""

    def __init__(self) -> None:
        self.features: tuple[tuple[str, int], ...] | None = None

    def check(self, hypothesis: Hypothesis) -> None:
        """Compare the features of a line with the first line. Their order may differ.

        Raises:
            Fault: a feature is missing, is new, or has another number of values.
        """
        features = tuple((name, len(values)) for name, values in hypothesis.dense)
        if self.features is None:
            self.features = features
        if features == self.features:
            return
        expected, counts = dict(self.features), dict(features)
        for name, count in features:
            if name not in expected:
                raise Fault(f"feature {shown(name)} is not in earlier lines")
            if count != expected[name]:
                raise Fault(f"feature {shown(name)} has {counted(count, 'value')}, earlier lines have {expected[name]}")
        for name in expected:
            if name not in counts:
                raise Fault(f"feature {shown(name)} is missing, earlier lines have it")


class Order:
    """A check that all lines of a sentence are contiguous.

    Ids that count up from the first one need no memory. All other ids are stored, about 60 bytes each.
    """

    def __init__(self) -> None:
        self._counted: range | None = None  # ids from the first one, without gaps
        self._others: set[int] = set()
        self._current: int | None = None

    def check(self, sentence: int) -> None:
        """Check the id of the next line.

        Raises:
            Fault: the id occurred before, with another id in between.
        """
        if sentence == self._current:
            return
        self._current = sentence
        known = self._counted or range(sentence, sentence)
        if sentence in known or sentence in self._others:
            hint = "`moses-rerank validate --regroup` sorts a list by id"
            raise Fault(f"sentence {sentence} occurs again after other sentences. {hint}")
        if sentence == known.stop:
            self._counted = range(known.start, sentence + 1)
        else:
            self._others.add(sentence)


class EmptyLines:
    """The number of empty lines in a list, and the line number of the first. Like Moses' tools, readers skip them."""

    def __init__(self) -> None:
        self.count = self._first = 0

    def add(self, number: int) -> None:
        """Count an empty line with this line number."""
        self._first = self._first or number
        self.count += 1

    def __str__(self) -> str:
        return f"{counted(self.count, 'empty line')}, the first is line {self._first}"


def without_end(line: bytes) -> str:
    """Return a suffix for the message about a faulty line if the line has no line end, or ""."""
    return "" if line.endswith(b"\n") else ". The line has no line end, so the list was probably cut off here"


def read_hypotheses(path: str | Lines, checked: bool = True, empty: EmptyLines | None = None) -> Iterator[Hypothesis]:
    """Yield the lines of a list one after the other, except empty lines.

    Args:
        path: of the list, `-` for stdin, or its lines.
        checked: whether to check that sentences are contiguous and that all lines have equal dense features.
        empty: counter of the skipped empty lines, optional.

    Raises:
        InputError: a line cannot be parsed or, if `checked`, does not match the lines before. The message names file
            and line.
    """
    layout, order, parser = Layout(), Order(), LineParser()
    for number, line in numbered_lines(path, LIST_OVERHEAD):
        if not without_line_end(line):
            if empty is not None:
                empty.add(number)
            continue
        try:
            hypothesis = parser.parse(line, number)
            if checked:
                layout.check(hypothesis)
                order.check(hypothesis.sentence)
        except Fault as fault:
            raise InputError(f"{name_of(path)}:{number}: {fault}{without_end(line)}") from None
        yield hypothesis


def read_nbest(path: str | Lines, empty: EmptyLines | None = None) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence. Only one sentence at a time is held in memory.

    Args:
        path: of the list, `-` for stdin, or its lines.
        empty: counter of the skipped empty lines, optional.

    Raises:
        InputError: the list is empty, or an error of `read_hypotheses`.
    """
    sentence = None
    for sentence, group in groupby(read_hypotheses(path, empty=empty), key=lambda hypothesis: hypothesis.sentence):
        yield SentenceList(sentence, tuple(group), name_of(path))
    if sentence is None:
        raise InputError(f"{name_of(path)}: the list is empty")


@dataclass(frozen=True)
class MosesOutput:
    """The translations that the decoder printed.

    Attributes:
        path: of the file.
        lines: translation of each source sentence, without the spaces around it.
    """

    path: str
    lines: list[str]

    def check(self, sentences: int, source: str) -> None:
        """Raise `InputError` if the number of lines is not `sentences`. The message names the file `source`."""
        if len(self.lines) != sentences:
            raise InputError(f"{self.path} has {counted(len(self.lines), 'line')}, {source} has {sentences:,}")

    def add_to(self, lists: Iterable[SentenceList]) -> Iterator[SentenceList]:
        """Yield the lists with the decoder's translation added. Raises `InputError` if an id is beyond the output."""
        for sentence_list in lists:
            check_id(sentence_list, len(self.lines), f"output of Moses in {self.path}")
            yield replace(sentence_list, moses_output=self.lines[sentence_list.sentence])


def read_moses_output(path: str | Lines, *, marks: bool = False) -> MosesOutput:
    """Read the translations that the decoder printed, one line per source sentence.

    Args:
        path: of the file, `-` for stdin, or its lines.
        marks: whether segmentation marks are allowed.

    Raises:
        InputError: a line has segmentation marks, or an error of `read_lines`.
    """
    output = MosesOutput(name_of(path), [line.strip(" ") for line in read_lines(path)])
    for number, line in enumerate(output.lines, start=1):
        if not marks and has_marks(line):
            raise InputError(f"{output.path}:{number}: {MARKS}")
    return output


def pool(paths: Sequence[str], marks: bool = True) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence in several lists of one text, such as the lists of all tuning runs.

    Sentences are in the order of their first occurrence. A text that an earlier list has for the sentence is omitted,
    but duplicates within one list are kept. All lists are held in memory, except a single list.

    Args:
        paths: of the lists.
        marks: whether segmentation marks are allowed.

    Raises:
        InputError: the lists have different dense features, a candidate has segmentation marks, or an error of
            `read_nbest`.
    """
    lists = [read_nbest(path) if marks else without_marks(read_nbest(path)) for path in paths]
    if len(lists) == 1:
        yield from lists[0]
        return
    layout, pooled = Layout(), dict[int, tuple[str, list[Hypothesis]]]()
    for path, sentence_lists in zip(paths, lists, strict=True):
        for sentence_list in sentence_lists:
            with at(f"{sentence_list.place}: "):
                layout.check(sentence_list.hypotheses[0])
            _, known = pooled.setdefault(sentence_list.sentence, (path, []))
            texts = {hypothesis.text for hypothesis in known}
            known += [hypothesis for hypothesis in sentence_list.hypotheses if hypothesis.text not in texts]
    for sentence, (path, hypotheses) in pooled.items():
        yield SentenceList(sentence, tuple(hypotheses), name_of(path))


def regroup(nbest: str, output: str) -> int:
    """Write the list with its lines sorted by sentence id. The order within a sentence stays the same.

    Returns:
        The number of sentences whose lines were not contiguous.

    Raises:
        InputError: a line cannot be parsed, or the list is empty.
    """
    rows = [(each.sentence, each.line.removesuffix(b"\n") + b"\n") for each in read_hypotheses(nbest, checked=False)]
    if not rows:
        raise InputError(f"{name_of(nbest)}: the list is empty")
    runs = Counter(sentence for sentence, _ in groupby(sentence for sentence, _ in rows))
    rows.sort(key=lambda row: row[0])
    with open_output(output) as stream:
        stream.writelines(line for _, line in rows)
    return sum(count > 1 for count in runs.values())


def check_id(sentence_list: SentenceList, lines: int, kind: str) -> None:
    """Raise `InputError` if the id of a list is not below `lines`, the number of lines of the text `kind`."""
    if sentence_list.sentence >= lines:
        extent = f"has {counted(lines, 'line')} (ids from 0 to {lines - 1})" if lines else "is empty"
        raise InputError(
            f"{sentence_list.place}: sentence {sentence_list.sentence} is beyond the {kind}, which {extent}"
        )


def without_marks(lists: Iterable[SentenceList]) -> Iterator[SentenceList]:
    """Yield the lists unchanged.

    Raises:
        InputError: a candidate has segmentation marks in its text.
    """
    for sentence_list in lists:
        for hypothesis in sentence_list.hypotheses:
            if has_marks(hypothesis.text):
                raise InputError(f"{name_of(sentence_list.path)}:{hypothesis.number}: {MARKS}")
        yield sentence_list
