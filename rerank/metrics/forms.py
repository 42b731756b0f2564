"""Forms of text that a filter turns into words: subwords and factors, found by the share of lines that have them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from moses_io.text import tokens


@dataclass(frozen=True)
class Form:
    """A form of text.

    Attributes:
        filter: name of the filter, a key of `FILTERS`.
        name: what messages call it.
        effect: what the filter does, for messages.
        marker: each line of this form contains it.
        is_in: whether a line with the marker has this form.
        least: share of lines, 0 to 1, from which a text counts as one of this form; below it the marker is a word.
    """

    filter: str
    name: str
    effect: str
    marker: str
    is_in: Callable[[str], object]
    least: float


def _is_factored(line: str) -> bool:
    """Return whether most tokens have a bar inside."""
    words = tokens(line)
    return 2 * sum("|" in word[1:-1] for word in words) > len(words)


FACTORS = Form("factors", "factors such as word|pos", "keeps the first one", "|", _is_factored, 0.5)
SUBWORDS = (
    Form("debpe", "subwords that end in @@", "joins them", "@@", re.compile("[^ ]@@( |$)").search, 0.01),
    Form("desentencepiece", "subwords with ▁", "joins them", "▁", re.compile("(^| )▁").search, 0.01),
    Form("dejoiner", "subwords with the joiner ￭", "joins them", "￭", re.compile("(^| )￭|￭( |$)").search, 0.01),
)


class Forms:
    """Counts the lines of each form in a text."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._lines = 0
        self._counts = Counter[str]()
        self.add_all(lines)

    def add_all(self, lines: Iterable[str]) -> None:
        """Count several lines."""
        for line in lines:
            self.add(line)

    def add(self, line: str) -> None:
        """Count one more line."""
        self._lines += 1
        for form in (FACTORS, *SUBWORDS):
            if form.marker in line and form.is_in(line):
                self._counts[form.filter] += 1

    def __contains__(self, form: Form) -> bool:
        return self._counts[form.filter] > form.least * self._lines


def advice(texts: Mapping[str, Forms], references: Forms) -> list[str]:
    """Return a message for each form that texts and references do not share, and for subwords in both.

    Args:
        texts: by the name for messages, what is compared with the references.
        references: all of them.
    """
    messages = []
    for form in (FACTORS, *SUBWORDS):
        have = [name for name, counted in texts.items() if form in counted]
        lack = [name for name in texts if name not in have]
        hint = f"the filter '{form.filter}' {form.effect}"
        if form not in references and have:
            messages.append(f"{form.name} in {', '.join(have)}, not in the reference: they will not match; {hint}")
        if form in references and lack:
            messages.append(f"{form.name} in the reference, not in {', '.join(lack)}: they will not match; {hint}")
        if form in references and have and form in SUBWORDS:
            both = f"{', '.join(have)} and the reference"
            messages.append(f"{form.name} in {both}: metrics count subwords, not words; {hint}")
    return messages
