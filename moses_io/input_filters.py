"""Input filters: join the subwords of lists, sources and corpora before models and features read them."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from moses_io.files.errors import Fault, InputError, at, nearest, shown
from moses_io.files.text import encode, tokens, without_line_end
from moses_io.filters import FILTERS, Filters
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import MosesOutput, SentenceList

_SUBWORD_MARKERS: dict[str, tuple[str, Callable[[str], str]]] = {
    "factors": ("|", lambda token: token.split("|", 1)[0] or token),
    "debpe": ("@@", lambda token: token.removesuffix("@@")),
    "desentencepiece": ("▁", lambda token: token.replace("▁", "")),
    "dejoiner": ("￭", lambda token: token.strip("￭")),
}
"""For each filter, the mark of the texts that it changes, and a function that removes the marks of a token."""

NAMES = tuple(_SUBWORD_MARKERS)
"""Names of the filters that can be input filters. The others are for metrics only."""


@dataclass(frozen=True)
class InputFilters(Filters):
    """A chain of filters for everything that models and features read. Text without subwords stays the same.

    Raises:
        InputError: a filter is not one of `NAMES`.
    """

    def __post_init__(self) -> None:
        known = f"expected {', '.join(NAMES)}, several separated by commas"
        if not isinstance(self.text, str):
            raise InputError(f"input_filter: {known}, found {shown(self.text)}")
        for part in self._parts:
            if part in FILTERS and part not in NAMES:
                raise InputError(f"input_filter: {known}, found {shown(part)}, which is for metrics only")
            if part not in NAMES:
                raise InputError(f"input_filter: unknown filter {shown(part)}{nearest(part, list(NAMES))}")

    @property
    def joins(self) -> bool:
        """Whether a filter joins tokens."""
        return any(part != "factors" for part in self._parts)

    def word_indices(self, text: str) -> list[int]:
        """Return the index in the filtered text of the word of each token, -1 if the filtered text is empty.

        A token that belongs to several words counts for the first one.
        """
        row = tokens(text)
        indices = list(range(len(row)))
        for part in self._parts:
            marker, joined = _SUBWORD_MARKERS[part]
            characters = [len(joined(token) if marker in text else token) for token in row]
            text = FILTERS[part][0]("")(text)
            words = tokens(text)
            ends = list(accumulate(map(len, words)))
            starts = [0, *accumulate(characters)][: len(row)]
            found = [min(bisect_right(ends, start), len(words) - 1) for start in starts]
            indices, row = [found[index] if index >= 0 else index for index in indices], words
        return indices

    def filter_hypothesis(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its filtered text.

        If subwords are joined, the fields after the total are left out: alignments and phrases count subwords.

        Raises:
            Fault: the filtered text contains the separator of the list.
        """
        text = self(hypothesis.text)
        if "|||" in text:
            raise Fault(f"the filter {self.text} makes the separator '|||' of parts: {shown(hypothesis.text)}")
        identifier, _, *rest = hypothesis.fields
        end = rest[-1][len(without_line_end(rest[-1])) :]
        if self.joins and len(rest) > 2:
            rest = [rest[0], rest[1].rstrip(b" ") + end]
        return replace(hypothesis, fields=(identifier, b" " + encode(text) + b" ", *rest))

    def filter_lists(self, lists: Iterable[SentenceList]) -> Iterator[SentenceList]:
        """Yield the lists with filtered texts, or unchanged if there are no filters.

        Raises:
            InputError: a filtered text contains the separator.
        """
        if not self.text:
            yield from lists
            return
        for each in lists:
            yield replace(each, hypotheses=tuple(self._filtered(each.path, line) for line in each.hypotheses))

    def filter_output(self, output: MosesOutput) -> MosesOutput:
        """Return Moses' own output with filtered lines."""
        return replace(output, lines=[self(line) for line in output.lines])

    def _filtered(self, path: str, hypothesis: Hypothesis) -> Hypothesis:
        with at(f"{path}:{hypothesis.number}: "):
            return self.filter_hypothesis(hypothesis)


UNFILTERED = InputFilters()
"""No filters."""
