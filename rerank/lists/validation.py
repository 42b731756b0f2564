"""Validation: what is in an n-best list, and every fault in it with its line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moses_io.alignment import (
    BEYOND_SOURCE,
    LinkNumbering,
    counts_marks,
    describe_field,
    printed_alignment,
    segmentation,
    segmentation_faults,
)
from moses_io.compression import CANDIDATE
from moses_io.errors import Fault, InputError, counted, shown
from moses_io.hypothesis import Hypothesis, no_total, parse_line
from moses_io.list_end import ListEnd
from moses_io.nbest import MARKS, EmptyLines, Layout, Order, without_end
from moses_io.streams import name_of, numbered_lines
from moses_io.text import (
    ESCAPES,
    check_markup,
    has_marks,
    input_lines,
    missing_as_none,
    read_lines,
    tokens,
    without_line_end,
)
from moses_io.weights import read_weight_file
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import hint_for, unused_weights, with_rest
from rerank.metrics.filters import Forms, advice

FALLING = "the id falls; `rerank` needs ids that go up (--regroup)"
OTHER_SOURCE = "; is it the one of this list?"
TAB = "a tab inside a word: lists and references are split at spaces only, as Moses' extractor does"


@dataclass
class Findings:
    """What was found: `faults` make the list unreadable, `warnings` are for whom they concern."""

    path: str
    layout: Layout = field(default_factory=Layout)
    candidates: Counter[int] = field(default_factory=Counter)
    sparse: set[str] = field(default_factory=set)
    fields: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    duplicates: int = 0
    escaped: bool = False
    upper: bool = False
    forms: Forms = field(default_factory=Forms)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> list[str]:
        """Return lines that say what is in the list."""
        counts = sorted(self.candidates.values())
        if not counts:
            return [f"{self.path}: no candidates"]
        last = max(self.candidates)
        dense = ", ".join(f"{name}({count})" for name, count in self.layout.features or ())
        ids = f"ids {min(self.candidates)} to {last}, {last + 1 - len(counts)} missing"
        lines = [
            f"{self.path}: {len(counts)} sentences, {ids}",
            f"candidates: {sum(counts)}; a sentence {counts[0]} to {counts[-1]}, median {counts[len(counts) // 2]}; "
            f"{self.duplicates} texts repeated, {self.empty} empty",
            f"dense features (values): {dense or 'none'}",
            f"sparse features: {len(self.sparse)}",
        ]
        return lines + [f"{name}: in {count} lines" for name, count in self.fields.items()]


def validate(nbest: str, source: str | None, references: Sequence[str], weights: str | None) -> Findings:
    """Read a list to its end and collect all that is wrong or odd about it."""
    findings = Findings(name_of(nbest))
    lines_of = _read_texts(findings, source, references)
    survey = _Survey(findings, lines_of, lines_of[source] if source else [])
    for number, line in numbered_lines(nbest, CANDIDATE):
        survey.add(number, line)
    survey.end()
    _check_coverage(findings, lines_of)
    _check_references(findings, {path: lines_of[path] for path in references})
    _compare_weights(findings, weights)
    return findings


class _Survey:
    """What is found in one line of a list after the other."""

    def __init__(self, findings: Findings, lines_of: Mapping[str, Sequence[str]], sources: Sequence[str]) -> None:
        self._findings, self._lines_of, self._sources = findings, lines_of, sources
        self._order, self._texts, self._current = Order(), set[bytes](), -1
        self._empty, self._beyond, self._end = EmptyLines(), LinksBeyond(), ListEnd()
        self._segmentations = SegmentationFaults()
        self._without_total = ""
        self._first: dict[str, int] = {}  # by warning, the first line that it is about

    def add(self, number: int, line: bytes) -> None:
        """Look at a line."""
        if not without_line_end(line):
            self._empty.add(number)
            return
        path = self._findings.path
        try:
            hypothesis = parse_line(line, number)
            self._findings.layout.check(hypothesis)
            self._check_id(hypothesis)
        except Fault as fault:
            self._findings.faults.append(f"{path}:{number}: {fault}{without_end(line)}")
            return
        self._findings.duplicates += hypothesis.fields[1] in self._texts
        self._texts.add(hypothesis.fields[1])
        self._beyond.add(hypothesis, self._sources)
        self._segmentations.add(hypothesis, self._sources)
        self._end.add(hypothesis)
        if len(hypothesis.fields) > 3 and hypothesis.total is None:
            self._without_total = self._without_total or f"{path}:{number}: {no_total(hypothesis)}"
        for warning, found in ((MARKS, has_marks(hypothesis.text)), (TAB, "\t" in hypothesis.text)):
            if found:
                self._first.setdefault(warning, number)
        _count(self._findings, hypothesis)

    def end(self) -> None:
        """Add what is known at the end of the list to the warnings."""
        warnings, path = self._findings.warnings, self._findings.path
        if self._empty.count:
            warnings.append(f"{path}: {self._empty}, which all commands skip")
        if self._without_total:
            warnings.append(f"{self._without_total}; features such as `consensus` need one")
        warnings += [f"{path}:{number}: {warning}" for warning, number in self._first.items()]
        warnings += self._beyond.warnings(path)
        warnings += self._segmentations.warnings(path)
        if cut := self._end.cut():
            warnings.append(f"{path}:{cut}")

    def _check_id(self, hypothesis: Hypothesis) -> None:
        """Raise `Fault` if a sentence comes again, or is beyond a text."""
        if hypothesis.sentence == self._current:
            return
        if hypothesis.sentence < self._current:
            self._first.setdefault(FALLING, hypothesis.number)
        self._current, self._texts = hypothesis.sentence, set()
        self._order.check(self._current)
        for path, lines in self._lines_of.items():
            if self._current >= len(lines):
                raise Fault(f"sentence {self._current} is beyond {path}, which has {len(lines)} lines")


def _read_texts(findings: Findings, source: str | None, references: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of source and references by their paths, and add what is wrong with them to the findings."""
    lines_of = {path: read_lines(path) for path in references}
    for path, lines in lines_of.items():
        tab = next((number for number, line in enumerate(lines, start=1) if "\t" in line.strip(" \t")), 0)
        if tab:
            findings.warnings.append(f"{path}:{tab}: {TAB}")
    if source is None:
        return lines_of
    lines = list(input_lines(source))
    try:
        check_markup(source, lines)
    except InputError as error:
        findings.faults.append(str(error))
    return {source: lines, **lines_of}


def _check_coverage(findings: Findings, lines_of: dict[str, list[str]]) -> None:
    """Compare the number of sentences with that of the source and the references."""
    if not findings.candidates:
        findings.faults.append(f"{findings.path}: no line of the list can be read")
        return
    lengths = {path: len(lines) for path, lines in lines_of.items()}
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{path} has {length} lines" for path, length in lengths.items())
        findings.faults.append(f"source and references differ in length: {each}")
    expected = max([max(findings.candidates) + 1, *lengths.values()])
    missing = expected - len(findings.candidates)
    if missing > 0:
        first = next(sentence for sentence in range(expected) if sentence not in findings.candidates)
        lacking = f"{missing} of {expected} sentences have no candidates, the first is {first}"
        findings.warnings.append(f"{lacking}; `rerank` needs --on-missing")


def _check_references(findings: Findings, lines_of: dict[str, list[str]]) -> None:
    """Warn of blank lines in one of several references, and of text that is unlike that of the list."""
    known = [missing_as_none(lines) for lines in zip(*lines_of.values(), strict=False)]
    for path, lines in zip(lines_of, zip(*known, strict=True), strict=False):
        if count := lines.count(None):
            first = f"{name_of(path)}:{lines.index(None) + 1}"
            blank = f"blank line in one of several references, {count} in all"
            findings.warnings.append(f"{first}: {blank}; a missing reference does not count")
    _compare_texts(findings, [line for lines in lines_of.values() for line in lines])


class LinksBeyond:
    """The lines of a list whose word alignments point beyond the words.

    Chart decoders count `<s>` and `</s>`, others do not. For a line that does not decide it, the whole list does.
    """

    def __init__(self) -> None:
        self._numbering = LinkNumbering()
        self._certain: dict[str, list[int]] = {"source": [], "translation": []}
        self._unless_chart: dict[str, list[int]] = {"source": [], "translation": []}

    def add(self, hypothesis: Hypothesis, sources: Sequence[str]) -> None:
        """Look at a line; without its source only at the side of the translation."""
        links = printed_alignment(hypothesis)
        if not links:
            return
        ends = {"source": max(i for i, _ in links), "translation": max(j for _, j in links)}
        lengths = {"translation": len(tokens(hypothesis.text))}
        source_length = _source_length(hypothesis, sources)
        if source_length is not None:
            lengths["source"] = source_length
        self._numbering.add(hypothesis.sentence, links, lengths["translation"])
        # The source may be that of another list: the last source word with a link stands for </s>.
        decided = counts_marks(links, ends["source"] - 1, lengths["translation"])
        for side, length in lengths.items():
            beyond = ends[side] - length  # 0 for the index right behind the last word
            if beyond > 1 or (beyond >= 0 and decided is False):
                self._certain[side].append(hypothesis.number)
            elif beyond >= 0 and decided is None:
                self._unless_chart[side].append(hypothesis.number)

    def warnings(self, path: str) -> list[str]:
        """Return a line for each side on which links point beyond the words."""
        warnings = []
        for side, hint in (("source", OTHER_SOURCE), ("translation", "")):
            phrase_based = self._numbering.counts_marks is False
            lines = self._certain[side] + (self._unless_chart[side] if phrase_based else [])
            if lines:
                pointing = f"word alignments of {counted(len(lines), 'line')} point beyond the end of the {side}"
                warnings.append(f"{path}:{min(lines)}: {pointing}{hint}")
        return warnings


class SegmentationFaults:
    """The lines of a list whose segmentations do not fit the sentence, by fault."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}

    def add(self, hypothesis: Hypothesis, sources: Sequence[str]) -> None:
        """Check a line; without its source, only the side of the translation is checked for its length."""
        phrases = segmentation(hypothesis)
        if phrases is None:
            return
        target_length = len(tokens(hypothesis.text))
        for fault in segmentation_faults(phrases, _source_length(hypothesis, sources), target_length):
            self._lines.setdefault(fault, []).append(hypothesis.number)

    def warnings(self, path: str) -> list[str]:
        """Return a line for each fault, with the number of lines and the first line."""
        return [
            f"{path}:{lines[0]}: segmentations of {counted(len(lines), 'line')} have {fault}"
            + (OTHER_SOURCE if fault == BEYOND_SOURCE else "")
            for fault, lines in self._lines.items()
        ]


def _source_length(hypothesis: Hypothesis, sources: Sequence[str]) -> int | None:
    """Return the number of source words of a line, or None if its source is not known."""
    # An id beyond the source is a fault of its own, and has no source line.
    return len(tokens(sources[hypothesis.sentence])) if hypothesis.sentence < len(sources) else None


def _count(findings: Findings, hypothesis: Hypothesis) -> None:
    text = hypothesis.text
    findings.forms.add(text)
    findings.candidates[hypothesis.sentence] += 1
    findings.sparse.update(hypothesis.sparse)
    findings.empty += not text
    findings.escaped = findings.escaped or any(escape in text for escape in ESCAPES)
    findings.upper = findings.upper or text != text.lower()
    further = enumerate(hypothesis.fields[4:], start=5)
    findings.fields.update(f"field {place}, {describe_field(content)}" for place, content in further)


def _compare_texts(findings: Findings, references: list[str]) -> None:
    """Warn of escaping, upper case, subwords or factors on one side only, and of subwords on both."""
    if not references:
        return
    escaped = any(escape in line for line in references for escape in ESCAPES)
    upper = any(line != line.lower() for line in references)
    for here, there, what in (
        (findings.escaped, escaped, "escaped characters such as &apos;"),
        (findings.upper, upper, "upper case letters"),
    ):
        if here != there:
            side = "the list" if here else "the reference"
            findings.warnings.append(f"only {side} has {what}; they will not match")
    findings.warnings += advice({"the list": findings.forms}, Forms(references))


def _compare_weights(findings: Findings, path: str | None) -> None:
    if path is None or findings.layout.features is None:
        return
    content = read_weight_file(path)
    weights = content.weights
    findings.warnings += content.warnings
    space = FeatureSpace(findings.layout.features)
    weights = with_rest(weights, space)
    for name, _ in space.dense:
        if name not in weights:
            findings.warnings.append(f"feature {shown(name)} has no weight in {path}{hint_for([name])}")
    try:
        space.vector(weights)
    except Fault as fault:
        findings.faults.append(f"{path}: {fault}")
    if unused := unused_weights(space, weights):
        findings.warnings.append(f"weights without a feature in the list: {', '.join(unused)}")
