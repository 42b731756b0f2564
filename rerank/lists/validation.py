"""Validation: summary of an n-best list, and its errors and warnings with line numbers."""

from collections import Counter
from collections.abc import Sequence

from moses_io.alignment import (
    BEYOND_SOURCE,
    LinkNumbering,
    counts_bos_eos,
    describe_field,
    printed_alignment,
    segmentation,
    segmentation_faults,
)
from moses_io.files.compression import LIST_OVERHEAD
from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import (
    ESCAPES,
    check_markup,
    has_marks,
    input_lines,
    missing_as_none,
    read_lines,
    tokens,
    without_line_end,
)
from moses_io.filters import Forms, advice
from moses_io.hypothesis import Hypothesis, LineParser, no_total
from moses_io.list_end import ListEnd
from moses_io.nbest import MARKS, EmptyLines, Layout, Order, without_end
from moses_io.weights import read_weight_file
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import hint_for, unused_weights, weights_for

FALLING = "the id decreases, but `rerank` needs increasing ids (--regroup)"
OTHER_SOURCE = ". Does it belong to this list?"
TAB = "a tab inside a word: lists and references are split at spaces only, as Moses' extractor does"


class Findings:
    """Results of the validation of a list, which is added line by line.

    Attributes:
        path: name of the list in messages.
        errors: errors, which make the list unusable.
        warnings: possible mistakes.
    """

    def __init__(self, path: str, source: str | None, references: Sequence[str]) -> None:
        self.path = path
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self._references = {name_of(reference): read_lines(reference) for reference in references}
        for reference, lines in self._references.items():
            tab = next((number for number, line in enumerate(lines, start=1) if "\t" in line.strip(" \t")), 0)
            if tab:
                self.warnings.append(f"{reference}:{tab}: {TAB}")
        self._sources = self._read_source(source) if source else []
        self._texts = ({name_of(source): self._sources} if source else {}) | self._references
        self._layout, self._parser = Layout(), LineParser()
        self._order = Order()
        self._empty_lines = EmptyLines()
        self._end = ListEnd()
        self._links = LinksBeyond()
        self._segmentations = SegmentationFaults()
        self._forms = Forms()
        self._candidates = Counter[int]()
        self._fields = Counter[str]()
        self._sparse: set[str] = set()
        self._empty = self._duplicates = 0
        self._escaped = self._upper = False
        self._current = -1
        self._seen: set[bytes] = set()  # texts of the current sentence
        self._without_total = ""
        self._first: dict[str, int] = {}  # first line number of each warning

    def _read_source(self, path: str) -> list[str]:
        lines = list(input_lines(path))
        try:
            check_markup(path, lines)
        except InputError as error:
            self.errors.append(str(error))
        return lines

    def add(self, number: int, line: bytes) -> None:
        """Check the next line of the list."""
        if not without_line_end(line):
            self._empty_lines.add(number)
            return
        try:
            hypothesis = self._parser.parse(line, number)
            self._layout.check(hypothesis)
        except Fault as fault:
            self.errors.append(f"{self.path}:{number}: {fault}{without_end(line)}")
            return
        try:
            self._check_id(hypothesis)
        except Fault as fault:
            self.errors.append(f"{self.path}:{number}: {fault}")
        self._duplicates += hypothesis.fields[1] in self._seen
        self._seen.add(hypothesis.fields[1])
        self._links.add(hypothesis, self._sources)
        self._segmentations.add(hypothesis, self._sources)
        self._end.add(hypothesis)
        if len(hypothesis.fields) > 3 and hypothesis.total is None:
            self._without_total = self._without_total or f"{self.path}:{number}: {no_total(hypothesis)}"
        for warning, found in ((MARKS, has_marks(hypothesis.text)), (TAB, "\t" in hypothesis.text)):
            if found:
                self._first.setdefault(warning, number)
        self._count(hypothesis)

    def end(self) -> None:
        """Add the warnings that are known only at the end of the list."""
        if self._empty_lines.count:
            self.warnings.append(f"{self.path}: {self._empty_lines}, which all commands skip")
        if self._without_total:
            self.warnings.append(f"{self._without_total}. Features such as `consensus` need one")
        self.warnings += [f"{self.path}:{number}: {warning}" for warning, number in self._first.items()]
        self.warnings += self._links.warnings(self.path)
        self.warnings += self._segmentations.warnings(self.path)
        if cut := self._end.cut():
            self.warnings.append(f"{self.path}:{cut}")

    def _check_id(self, hypothesis: Hypothesis) -> None:
        """Raise `Fault` if a sentence id appears a second time or is beyond the source or a reference."""
        if hypothesis.sentence == self._current:
            return
        if hypothesis.sentence < self._current:
            self._first.setdefault(FALLING, hypothesis.number)
        self._current = hypothesis.sentence
        self._seen.clear()
        self._order.check(self._current)
        for path, lines in self._texts.items():
            if self._current >= len(lines):
                raise Fault(f"sentence {self._current} is beyond {path}, which has {counted(len(lines), 'line')}")

    def _count(self, hypothesis: Hypothesis) -> None:
        text = hypothesis.text
        self._forms.add(text)
        self._candidates[hypothesis.sentence] += 1
        self._sparse.update(hypothesis.sparse)
        self._empty += not text
        self._escaped = self._escaped or any(escape in text for escape in ESCAPES)
        self._upper = self._upper or text != text.lower()
        further = enumerate(hypothesis.fields[4:], start=5)
        self._fields.update(f"field {number}, {describe_field(content)}" for number, content in further)

    def check_coverage(self) -> None:
        """Compare the number of sentences with the lengths of the source and the references."""
        if not self._candidates:
            self.errors.append(f"{self.path}: no line of the list can be read")
            return
        lengths = {path: len(lines) for path, lines in self._texts.items()}
        if len(set(lengths.values())) > 1:
            each = ", ".join(f"{path} has {counted(length, 'line')}" for path, length in lengths.items())
            self.errors.append(f"source and references differ in length: {each}")
        expected = max([max(self._candidates) + 1, *lengths.values()])
        missing = expected - len(self._candidates)
        if missing > 0:
            first = next(sentence for sentence in range(expected) if sentence not in self._candidates)
            lacking = f"{missing} of {expected} sentences have no candidates, the first is {first}"
            self.warnings.append(f"{lacking}. `rerank` needs --on-missing")

    def check_references(self) -> None:
        """Warn of blank lines in one of several references and of different preprocessing of references and list."""
        known = [missing_as_none(lines) for lines in zip(*self._references.values(), strict=False)]
        for path, lines in zip(self._references, zip(*known, strict=True), strict=False):
            if count := lines.count(None):
                first = f"{path}:{lines.index(None) + 1}"
                self.warnings.append(f"{first}: missing reference (blank line, {count} in all). It does not count")
        self._compare_texts([line for lines in self._references.values() for line in lines])

    def _compare_texts(self, references: list[str]) -> None:
        """Warn of escapes, upper case, subwords or factors on one side only, and of subwords on both sides."""
        if not references:
            return
        escaped = any(escape in line for line in references for escape in ESCAPES)
        upper = any(line != line.lower() for line in references)
        for in_list, in_references, content in (
            (self._escaped, escaped, "escaped characters such as &apos;"),
            (self._upper, upper, "upper case letters"),
        ):
            if in_list != in_references:
                side = "the list" if in_list else "the reference"
                self.warnings.append(f"only {side} has {content}. They will not match")
        self.warnings += advice({"the list": self._forms}, Forms(references))

    def compare_weights(self, path: str) -> None:
        """Compare the features of the list with the weights in a file."""
        if self._layout.features is None:
            return
        content = read_weight_file(path)
        self.warnings += content.warnings
        space = FeatureSpace(self._layout.features)
        weights = weights_for(content, space)
        for name, _ in space.dense:
            if name not in weights:
                self.warnings.append(f"feature {shown(name)} has no weight in {path}{hint_for([name], space, weights)}")
        try:
            space.vector(weights)
        except Fault as fault:
            self.errors.append(f"{path}: {fault}")
        if unused := unused_weights(space, weights):
            self.warnings.append(f"weights without a feature in the list: {', '.join(unused)}")

    def summary(self) -> list[str]:
        """Return the lines of a summary of the list."""
        counts = sorted(self._candidates.values())
        if not counts:
            return [f"{self.path}: no candidates"]
        last = max(self._candidates)
        dense = ", ".join(f"{name}({count})" for name, count in self._layout.features or ())
        per_sentence = f"{counts[0]} to {counts[-1]} per sentence, median {counts[len(counts) // 2]}"
        ids = f"ids {min(self._candidates)} to {last}, {last + 1 - len(counts)} missing"
        lines = [
            f"{self.path}: {counted(len(counts), 'sentence')}, {ids}",
            f"candidates: {sum(counts):,} ({per_sentence}), "
            f"{counted(self._duplicates, 'repeated text')}, {counted(self._empty, 'empty text')}",
            f"dense features (values): {dense or 'none'}",
            f"sparse features: {len(self._sparse)}",
        ]
        return lines + [f"{name}: in {counted(count, 'line')}" for name, count in self._fields.items()]


def validate(nbest: str, source: str | None, references: Sequence[str], weights: str | None) -> Findings:
    """Read a whole list and return its errors and warnings.

    Args:
        nbest: path of the list.
        source: path of the source text, optional.
        references: paths of the references, optional.
        weights: path of a weight file to compare with the features of the list, optional.
    """
    findings = Findings(name_of(nbest), source, references)
    for number, line in numbered_lines(nbest, LIST_OVERHEAD):
        findings.add(number, line)
    findings.end()
    findings.check_coverage()
    findings.check_references()
    if weights:
        findings.compare_weights(weights)
    return findings


class LinksBeyond:
    """Lines of a list whose word alignments point beyond the last word.

    Chart decoders count `<s>` and `</s>`, other decoders do not. If a line does not show whether they are counted, the
    whole list decides.
    """

    def __init__(self) -> None:
        self._numbering = LinkNumbering()
        self._certain: dict[str, list[int]] = {"source": [], "translation": []}
        self._unless_chart: dict[str, list[int]] = {"source": [], "translation": []}

    def add(self, hypothesis: Hypothesis, sources: Sequence[str]) -> None:
        """Check a line. If its source is not known, only the target side is checked."""
        links = printed_alignment(hypothesis)
        if not links:
            return
        ends = {"source": max(i for i, _ in links), "translation": max(j for _, j in links)}
        lengths = {"translation": len(tokens(hypothesis.text))}
        source_length = _source_length(hypothesis, sources)
        if source_length is not None:
            lengths["source"] = source_length
        self._numbering.add(hypothesis.sentence, links, lengths["translation"])
        # The given source may belong to another list, so its length is not used here: the largest source index with
        # a link is taken for </s>.
        decided = counts_bos_eos(links, ends["source"] - 1, lengths["translation"])
        for side, length in lengths.items():
            beyond = ends[side] - length  # 0 for the index right after the last word
            if beyond > 1 or (beyond >= 0 and decided is False):
                self._certain[side].append(hypothesis.number)
            elif beyond >= 0 and decided is None:
                self._unless_chart[side].append(hypothesis.number)

    def warnings(self, path: str) -> list[str]:
        """Return a warning for each side on which links point beyond the last word."""
        warnings = []
        for side, hint in (("source", OTHER_SOURCE), ("translation", "")):
            phrase_based = self._numbering.counts_bos_eos is False
            lines = self._certain[side] + (self._unless_chart[side] if phrase_based else [])
            if lines:
                pointing = f"word alignments of {counted(len(lines), 'line')} point beyond the end of the {side}"
                warnings.append(f"{path}:{min(lines)}: {pointing}{hint}")
        return warnings


class SegmentationFaults:
    """Lines of a list whose phrase segmentations do not fit the sentence, by kind of error."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}

    def add(self, hypothesis: Hypothesis, sources: Sequence[str]) -> None:
        """Check a line. If its source is not known, only the target length is checked."""
        phrases = segmentation(hypothesis)
        if phrases is None:
            return
        target_length = len(tokens(hypothesis.text))
        for fault in segmentation_faults(phrases, _source_length(hypothesis, sources), target_length):
            self._lines.setdefault(fault, []).append(hypothesis.number)

    def warnings(self, path: str) -> list[str]:
        """Return a warning for each kind of error, with the number of lines and the first line number."""
        return [
            f"{path}:{lines[0]}: segmentations of {counted(len(lines), 'line')} have {fault}"
            + (OTHER_SOURCE if fault == BEYOND_SOURCE else "")
            for fault, lines in self._lines.items()
        ]


def _source_length(hypothesis: Hypothesis, sources: Sequence[str]) -> int | None:
    """Return the number of source words of a line, or None if its source is not known."""
    # `Findings` reports an id beyond the source as an error of its own.
    return len(tokens(sources[hypothesis.sentence])) if hypothesis.sentence < len(sources) else None
