"""Input filters: join the subwords of lists, sources and corpora before models and features read them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from moses_io.alignment import format_links, read_alignments
from moses_io.files.errors import Fault, InputError, at, shown
from moses_io.files.streams import name_of, open_output
from moses_io.files.text import encode, input_lines, parallel_lines, tokens, without_line_end
from moses_io.filters import FILTERS, Filters
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import MosesOutput, SentenceList, read_hypotheses

_Continues = Callable[[Sequence[str]], list[bool]]
"""Function that returns for each token except the first whether it continues the word of the token before."""


def _continues_bpe(row: Sequence[str]) -> list[bool]:
    return [before.endswith("@@") for before in row[:-1]]


def _continues_sentencepiece(row: Sequence[str]) -> list[bool]:
    marked = any("▁" in token for token in row)
    return [marked and not token.startswith("▁") for token in row[1:]]


def _continues_joiner(row: Sequence[str]) -> list[bool]:
    return [before.endswith("￭") or token.startswith("￭") for before, token in pairwise(row)]


def _continues_never(row: Sequence[str]) -> list[bool]:
    return [False] * (len(row) - 1)


_CONTINUES: dict[str, _Continues] = {
    "factors": _continues_never,
    "debpe": _continues_bpe,
    "desentencepiece": _continues_sentencepiece,
    "dejoiner": _continues_joiner,
}

NAMES = tuple(_CONTINUES)
"""Names of the filters that can be input filters. The others are for metrics only."""


@dataclass(frozen=True)
class InputFilters(Filters):
    """A chain of filters for everything that models and features read. Text without subwords stays as it is.

    Raises:
        InputError: a filter is unknown, or joins no subwords or factors.
    """

    def __post_init__(self) -> None:
        with at("input_filter: "):
            super().__post_init__()
        for part in self._parts:
            if part not in NAMES:
                known = f"expected {', '.join(NAMES)}"
                raise InputError(f"input_filter: {known}, found {shown(part)}, which is for metrics")

    @property
    def joins(self) -> bool:
        """Whether a filter joins tokens."""
        return any(part != "factors" for part in self._parts)

    def word_indices(self, text: str) -> list[int]:
        """Return, for each token of a text, the index of its word in the filtered text, -1 if that is empty."""
        indices = list(range(len(tokens(text))))
        for part in self._parts:
            row = tokens(text)
            text = FILTERS[part][0]("")(text)
            last = len(tokens(text)) - 1
            begins = [0, *(not continues for continues in _CONTINUES[part](row))][: len(row)]
            if last < 0:
                return [-1] * len(indices)
            words = [min(index, last) for index in accumulate(begins)]
            indices = [words[index] for index in indices]
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
        """Yield the lists with filtered texts. Raises `InputError` as `filter_hypothesis`."""
        for each in lists:
            yield replace(each, hypotheses=tuple(map(self._filter_line(each.path), each.hypotheses)))

    def filter_output(self, output: MosesOutput) -> MosesOutput:
        """Return Moses' own output with filtered lines."""
        return replace(output, lines=[self(line) for line in output.lines])

    def _filter_line(self, path: str) -> Callable[[Hypothesis], Hypothesis]:
        def change(hypothesis: Hypothesis) -> Hypothesis:
            with at(f"{name_of(path)}:{hypothesis.number}: "):
                return self.filter_hypothesis(hypothesis)

        return change

    def write_text(self, path: str, output: str) -> None:
        """Write the filtered lines of a text."""
        with open_output(output) as stream:
            stream.writelines(encode(self(line)) + b"\n" for line in input_lines(path))

    def write_list(self, path: str, output: str) -> None:
        """Write a list with filtered texts. Raises `InputError` if a line cannot be read."""
        change = self._filter_line(path)
        with open_output(output) as stream:
            stream.writelines(without_line_end(change(each).line) + b"\n" for each in read_hypotheses(path))

    def write_alignment(self, path: str, source: str, target: str, output: str) -> None:
        """Write the word alignment of a corpus with the indices of the words of the filtered corpus.

        Args:
            path: the alignment of the unfiltered corpus.
            source: its source.
            target: its target.
            output: the alignment to write.

        Raises:
            InputError: the alignment does not fit the corpus.
        """
        rows = [tuple(map(self.word_indices, pair)) for pair in parallel_lines(source, target)]
        lengths = ([len(row) for row, _ in rows], [len(row) for _, row in rows])
        with open_output(output) as stream:
            for (of_source, of_target), links in zip(rows, read_alignments(path, *lengths), strict=True):
                words = frozenset((of_source[i], of_target[j]) for i, j in links)
                kept = frozenset(link for link in words if min(link) >= 0)
                stream.write(encode(format_links(kept)) + b"\n")


UNFILTERED = InputFilters()
"""No filters."""
