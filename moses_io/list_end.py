"""The end of an n-best list: whether its last line was cut off, as by a killed decoder or a full disk."""

from collections.abc import Iterable, Iterator, Sequence

from moses_io.alignment import describe_field, printed_links, printed_phrases
from moses_io.files.errors import counted
from moses_io.files.text import tokens, without_line_end
from moses_io.hypothesis import Hypothesis, no_total
from moses_io.nbest import SentenceList, total_or_lowest

FEWEST_TOTALS = 6
"""Minimum number of lines of a sentence for the check that totals fall."""


class ListEnd:
    """The last sentence of a list, and the line before it."""

    def __init__(self) -> None:
        self._before: Hypothesis | None = None
        self._lines: list[Hypothesis] = []

    def add(self, hypothesis: Hypothesis) -> None:
        """Add the next line."""
        if self._lines and self._lines[-1].sentence != hypothesis.sentence:
            self._before, self._lines = self._lines[-1], []
        self._lines.append(hypothesis)

    def follow(self, lists: Iterable[SentenceList]) -> Iterator[SentenceList]:
        """Yield the lists unchanged and record their lines."""
        for sentence_list in lists:
            for hypothesis in sentence_list.hypotheses:
                self.add(hypothesis)
            yield sentence_list

    def cut(self) -> str:
        """Return the number of the last line and what it lacks if it was cut off, or "".

        A line is cut off if it has no line end, and lacks something that the line before it has. A last line that only
        has no line end is legal.
        """
        before = self._lines[-2] if len(self._lines) > 1 else self._before
        if before is None or self._lines[-1].line.endswith(b"\n"):
            return ""
        lacks = _lacks(self._lines[-1], before) or _total_rises(self._lines)
        return f"{self._lines[-1].number}: the last line was cut off: no line end, and {lacks}" if lacks else ""


def _lacks(last: Hypothesis, before: Hypothesis) -> str:
    """Return what a line lacks that the one before it has, or ""."""
    if len(last.fields) < len(before.fields):
        return f"{counted(len(last.fields), 'field')}, the line before has {len(before.fields)}"
    if before.total is not None and last.total is None:
        return no_total(last)
    # Fields before the last one are followed by bars, so that they are whole.
    return _lacks_in_last_field(last, before) if 4 < len(before.fields) == len(last.fields) else ""


def _lacks_in_last_field(last: Hypothesis, before: Hypothesis) -> str:
    """Return what the last field of a line, of links or phrases, lacks that the same field of the line before has."""
    own = without_line_end(last.fields[-1])
    other = without_line_end(before.fields[-1])
    name = f"its field {len(last.fields)}"
    as_before = ", as that of the line before does" if other else ""
    # An empty field does not show what it is for, so that of the last line decides.
    if describe_field(other if other.strip(b" ") else own) == "segmentation":
        whole = not before.text or _reaches_end(before)
        if last.text and whole and not _reaches_end(last):
            return f"{name} does not reach the last word{as_before}"
        return ""
    if printed_links(other) is None:
        return ""
    if printed_links(own) is None:
        return f"{name} ends inside a link"
    # Moses prints a space behind each link.
    if other.endswith(b" ") and not own.endswith(b" "):
        return f"{name} does not end with a space{as_before}"
    return ""


def _reaches_end(hypothesis: Hypothesis) -> bool:
    """Return whether the last field of a line is a segmentation up to the last target word."""
    phrases = printed_phrases(hypothesis.fields[-1]) or []
    return max((each.target_end for each in phrases), default=-1) >= max(len(tokens(hypothesis.text)) - 1, 0)


def _total_rises(lines: Sequence[Hypothesis]) -> str:
    """Return that the last total is higher than the one before, if all others of the sentence fall; or ""."""
    totals = [total_or_lowest(line) for line in lines]
    falls = len(totals) >= FEWEST_TOTALS and totals[:-1] == sorted(totals[:-1], reverse=True)
    return "its total is higher than that of the line before" if falls and totals[-1] > totals[-2] else ""
