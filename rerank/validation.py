"""Validation: what is in an n-best list, and every fault in it with its line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from moses_io.alignment import describe_field, printed_links
from moses_io.errors import Fault, shown
from moses_io.hypothesis import Hypothesis, no_total, parse_line
from moses_io.nbest import EmptyLines, Layout, Order
from moses_io.packing import CANDIDATE
from moses_io.streams import name_of, numbered_lines
from moses_io.text import ESCAPES, has_marks, missing_as_none, read_lines, tokens, without_line_end
from moses_io.weights import read_weights
from rerank.candidates import FeatureSpace
from rerank.weights import unused_weights


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
    lines_of = {path: read_lines(path) for path in [*([source] if source else []), *references]}
    empty = EmptyLines()
    order, texts, without_total, marked, falling, beyond, current = Order(), set[bytes](), "", 0, 0, 0, -1
    for number, line in numbered_lines(nbest, CANDIDATE):
        if not without_line_end(line):
            empty.add(number)
            continue
        try:
            hypothesis = parse_line(line, number)
            findings.layout.check(hypothesis)
            if hypothesis.sentence != current:
                falling = falling or (number if hypothesis.sentence < current else 0)
                current, texts = hypothesis.sentence, set()
                order.check(current)
                for path, lines in lines_of.items():
                    if current >= len(lines):
                        raise Fault(f"sentence {current} is beyond {path}, which has {len(lines)} lines")
        except Fault as fault:
            findings.faults.append(f"{findings.path}:{number}: {fault}")
            continue
        findings.duplicates += hypothesis.fields[1] in texts
        texts.add(hypothesis.fields[1])
        beyond += source is not None and _points_beyond(hypothesis, lines_of[source])
        if len(hypothesis.fields) > 3 and hypothesis.total is None:
            without_total = without_total or f"{findings.path}:{number}: {no_total(hypothesis)}"
        marked = marked or (number if has_marks(hypothesis.text) else 0)
        _count(findings, hypothesis)
    if empty.count:
        findings.warnings.append(f"{findings.path}: {empty}, which all commands skip")
    if without_total:
        findings.warnings.append(f"{without_total}; features such as `consensus` need one")
    if marked:
        findings.warnings.append(f"{findings.path}:{marked}: segmentation marks such as |0-1| (Moses' -t), not words")
    if falling:
        findings.warnings.append(f"{findings.path}:{falling}: the id falls; `rerank` needs ids that go up (--regroup)")
    if beyond:
        pointing = f"word alignments of {beyond} lines point beyond the end of the source"
        findings.warnings.append(f"{pointing}; is it the one of this list?")
    _check_coverage(findings, lines_of)
    _check_references(findings, {path: lines_of[path] for path in references})
    _compare_weights(findings, weights)
    return findings


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


def _points_beyond(hypothesis: Hypothesis, sources: Sequence[str]) -> bool:
    """Tell whether a word alignment names a source word that is not there; chart lists count `<s>` and `</s>`."""
    known = sources[hypothesis.sentence : hypothesis.sentence + 1]  # none where the id itself is beyond the source
    for content in hypothesis.fields[4:]:
        links = printed_links(content)
        if links is not None:
            return any(place > len(tokens(source)) + 1 for source in known for place, _ in links)
    return False


def _count(findings: Findings, hypothesis: Hypothesis) -> None:
    text = hypothesis.text
    findings.candidates[hypothesis.sentence] += 1
    findings.sparse.update(hypothesis.sparse)
    findings.empty += not text
    findings.escaped = findings.escaped or any(escape in text for escape in ESCAPES)
    findings.upper = findings.upper or text != text.lower()
    further = enumerate(hypothesis.fields[4:], start=5)
    findings.fields.update(f"field {place}, {describe_field(content)}" for place, content in further)


def _compare_texts(findings: Findings, references: list[str]) -> None:
    """Warn of escaping or upper case on one side only."""
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


def _compare_weights(findings: Findings, path: str | None) -> None:
    if path is None or findings.layout.features is None:
        return
    weights = read_weights(path)
    space = FeatureSpace(findings.layout.features)
    for name, _ in space.dense:
        if name not in weights:
            findings.warnings.append(f"feature {shown(name)} has no weight in {path}")
    try:
        space.vector(weights)
    except Fault as fault:
        findings.faults.append(f"{path}: {fault}")
    if unused := unused_weights(space, weights):
        findings.warnings.append(f"weights without a feature in the list: {', '.join(unused)}")
