"""Detection of an n-best list whose last line was cut off, for example by a killed decoder or a full disk."""

from collections.abc import Iterable, Iterator, Sequence

from moses_io.alignment import describe_field, printed_links, printed_phrases
from moses_io.files.errors import counted
from moses_io.files.text import tokens, without_line_end
from moses_io.hypothesis import Hypothesis, no_total
from moses_io.nbest import SentenceList, total_or_lowest

MIN_TOTALS = 6
"""Minimum number of lines of a sentence for the check that totals decrease."""


class ListEnd:
    """The last sentence of a list and the line before it, recorded while the list is read."""

    def __init__(self) -> None:
        self._before: Hypothesis | None = None
        self._lines: list[Hypothesis] = []

    def add(self, hypothesis: Hypothesis) -> None:
        """Record the next line of the list."""
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
        """Return a message with the number of the last line if it was cut off, or "".

        A line was cut off if it has no line end, and also lacks something that the line before it has. A missing line
        end alone is legal.
        """
        before = self._lines[-2] if len(self._lines) > 1 else self._before
        if before is None or self._lines[-1].line.endswith(b"\n"):
            return ""
        lacks = _lacks(self._lines[-1], before) or _total_rises(self._lines)
        return f"{self._lines[-1].number}: the last line was cut off: no line end, and {lacks}" if lacks else ""


def _lacks(last: Hypothesis, before: Hypothesis) -> str:
    """Return a description of the part that is missing in comparison with the line before, or ""."""
    if len(last.fields) < len(before.fields):
        return f"{counted(len(last.fields), 'field')}, the line before has {len(before.fields)}"
    if before.total is not None and last.total is None:
        return no_total(last)
    # Fields before the last one are followed by bars, so they are complete.
    return _lacks_in_last_field(last, before) if 4 < len(before.fields) == len(last.fields) else ""


def _lacks_in_last_field(last: Hypothesis, before: Hypothesis) -> str:
    """Return a description of the part that is missing in a last field with links or phrases, or ""."""
    last_field = without_line_end(last.fields[-1])
    field_before = without_line_end(before.fields[-1])
    name = f"its field {len(last.fields)}"
    as_before = ", unlike that of the line before" if field_before else ""
    # An empty field of the line before does not show its kind. Then the field of the last line decides.
    if describe_field(field_before if field_before.strip(b" ") else last_field) == "segmentation":
        whole = not before.text or _reaches_end(before)
        if last.text and whole and not _reaches_end(last):
            return f"{name} does not reach the last word{as_before}"
        return ""
    if printed_links(field_before) is None:
        return ""
    if printed_links(last_field) is None:
        return f"{name} ends inside a link"
    # Moses prints a space after each link.
    if field_before.endswith(b" ") and not last_field.endswith(b" "):
        return f"{name} does not end with a space{as_before}"
    return ""


def _reaches_end(hypothesis: Hypothesis) -> bool:
    """Return whether the segmentation in the last field of a line reaches the last target word."""
    phrases = printed_phrases(hypothesis.fields[-1]) or []
    return max((each.target_end for each in phrases), default=-1) >= max(len(tokens(hypothesis.text)) - 1, 0)


def _total_rises(lines: Sequence[Hypothesis]) -> str:
    """Return a message if only the last total of a sentence is higher than the total before it, or "".

    A total that was cut off, such as `-1` of `-12.5`, is still a number. It can only be detected by its size.
    """
    totals = [total_or_lowest(line) for line in lines]
    falls = len(totals) >= MIN_TOTALS and totals[:-1] == sorted(totals[:-1], reverse=True)
    return "its total is higher than that of the line before" if falls and totals[-1] > totals[-2] else ""
