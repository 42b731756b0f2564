"""Segmentations and word alignments.

An n-best list has them in the fields after the total of each line, a parallel corpus in a separate file.
"""

import re
from array import array
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import NamedTuple, overload

from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, tokens, without_line_end
from moses_io.hypothesis import Hypothesis

Alignment = frozenset[tuple[int, int]]
"""Links (source index, target index) between words, from 0."""


class Alignments(Sequence[Alignment]):
    """Links of many sentence pairs in a tenth of the memory of a list.

    Attributes:
        distinct: distinct links.
        numbers: index of each link of each pair in `distinct`.
        ends: `numbers` of pair n are numbers[ends[n] : ends[n + 1]].
    """

    def __init__(self, alignments: Iterable[Alignment] = ()) -> None:
        self.distinct: list[tuple[int, int]] = []
        self.numbers, self.ends = array("i"), array("q", [0])
        self._known: dict[tuple[int, int], int] = {}
        for each in alignments:
            self.append({self.number_of(link) for link in each})

    def number_of(self, link: tuple[int, int]) -> int:
        """Return the index of a link in `distinct`, to which it is added if it is new."""
        if link not in self._known:
            self._known[link] = len(self.distinct)
            self.distinct.append(link)
        return self._known[link]

    def append(self, numbers: Set[int]) -> None:
        """Add the links of a pair, given by their indices in `distinct`."""
        self.numbers.extend(numbers)
        self.ends.append(len(self.numbers))

    def __len__(self) -> int:
        return len(self.ends) - 1

    @overload
    def __getitem__(self, number: int) -> Alignment: ...
    @overload
    def __getitem__(self, number: slice) -> "Alignments": ...
    def __getitem__(self, number: int | slice) -> "Alignment | Alignments":
        if isinstance(number, slice):
            return Alignments(self[each] for each in range(*number.indices(len(self))))
        at = range(len(self))[number]
        return frozenset(self.distinct[each] for each in self.numbers[self.ends[at] : self.ends[at + 1]])


PrintedLinks = set[tuple[int, int]]
"""Links as printed in the list. Chart decoders also count `<s>` and `</s>`."""

_SEGMENT = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?=([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")

BACKWARDS = "ranges that run backwards"
BEYOND_SOURCE = "phrases beyond the end of the source"
BEYOND_TRANSLATION = "phrases beyond the end of the translation"
OVERLAPPING = "overlapping phrases"
"""Descriptions of the faults of a segmentation, for messages."""


class Phrase(NamedTuple):
    """Indices, from 0, of the first and last source word and the first and last target word of a phrase."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


def segmentation(line: Hypothesis) -> list[Phrase] | None:
    """Return the phrases of a line in target order, or None if the line has no segmentation."""
    for phrases in map(printed_phrases, line.fields[4:6]):
        if phrases:
            return sorted(phrases, key=lambda phrase: phrase.target_start)
    return None


def segmentation_faults(phrases: Sequence[Phrase], source_length: int | None, target_length: int) -> list[str]:
    """Return the faults of a segmentation that no decoder can have printed.

    Args:
        phrases: as returned by `segmentation`.
        source_length: number of source words, None if unknown.
        target_length: number of target words.

    Returns:
        `BACKWARDS` alone, or any of `BEYOND_SOURCE`, `BEYOND_TRANSLATION` and `OVERLAPPING`, or an empty list.
    """
    if any(each.source_start > each.source_end or each.target_start > each.target_end for each in phrases):
        return [BACKWARDS]
    in_source_order = sorted(phrases)
    overlapping = any(after.source_start <= last.source_end for last, after in pairwise(in_source_order))
    faults = []
    if source_length is not None and any(each.source_end >= source_length for each in phrases):
        faults.append(BEYOND_SOURCE)
    # Phrases without target words share an index with the next phrase, so they overlap in a correct segmentation too.
    if not _covers(phrases, target_length):
        if any(each.target_end >= target_length for each in phrases):
            faults.append(BEYOND_TRANSLATION)
        overlapping |= any(after.target_start <= last.target_end for last, after in pairwise(phrases))
    return faults + [OVERLAPPING] * overlapping


def _covers(phrases: Sequence[Phrase], target_length: int) -> bool:
    """Return whether phrases in target order cover each target word exactly once.

    Moses prints a phrase without target words (option `-drop-unknown`) like a phrase of one word. Its range is the
    index of the next target word: the first word of the next phrase, or `target_length` at the end.
    """
    end = 0  # target words covered so far
    next_starts = [*(each.target_start for each in phrases), target_length][1:]
    for phrase, next_start in zip(phrases, next_starts, strict=True):
        if phrase.target_start != end:
            return False
        # A one-word range is an empty phrase if the next phrase starts at this index too.
        if phrase.target_end > phrase.target_start or next_start > end:
            end = phrase.target_end + 1
    return end == target_length


def word_alignment(
    line: Hypothesis, source_length: int, target_length: int, list_counts: bool | None = None
) -> Alignment | None:
    """Return the links between words of a line, or None if the line has no alignment.

    The other arguments and the errors are documented at `fitted`.
    """
    links = printed_alignment(line)
    return None if links is None else fitted(links, source_length, target_length, list_counts)[0]


def fitted(
    links: PrintedLinks, source_length: int, target_length: int, list_counts: bool | None = None
) -> tuple[Alignment, bool]:
    """Return the links as pairs of word indices from 0, and whether links beyond the end of a sentence were dropped.

    Chart decoders count `<s>` and `</s>`: their indices are reduced by one, and links of `<s>` and `</s>` are dropped.
    Indices of other decoders are not changed. Their links that point one or two words past the end of the source or of
    the translation are dropped.

    Args:
        links: as printed.
        source_length: number of source words.
        target_length: number of target words.
        list_counts: whether the list counts `<s>` and `</s>` (`LinkNumbering.counts_bos_eos`). Used if the links of
            this line do not decide it. If None, undecided links are treated as links of a chart decoder if one points
            past the end.

    Returns:
        (links, dropped). `dropped` is False for a chart decoder, where dropping `<s>` and `</s>` is normal.

    Raises:
        Fault: a link points more than two words past the end, which no decoder prints.
    """
    beyond = any(i >= source_length or j >= target_length for i, j in links)
    if any(i > source_length + 1 or j > target_length + 1 for i, j in links):
        raise Fault(f"word alignment beyond the {source_length} source and {target_length} target words")
    line_counts = counts_bos_eos(links, source_length, target_length)
    counts = list_counts if line_counts is None else line_counts
    is_chart = beyond if counts is None else counts
    indices = {(i - 1, j - 1) for i, j in links} if is_chart else links
    within = frozenset((i, j) for i, j in indices if 0 <= i < source_length and 0 <= j < target_length)
    return within, beyond and not is_chart


def counts_bos_eos(links: PrintedLinks, source_length: int, target_length: int) -> bool | None:
    """Return whether the links count `<s>` and `</s>` (chart decoder), or None if they do not decide it.

    With Moses' glue grammar, each line of a chart decoder links `<s>` to `<s>` and `</s>` to `</s>`. With another
    grammar, no line has a link with index 0, which is `<s>`.
    """
    if (source_length + 1, target_length + 1) in links:
        return True
    return False if any(i == 0 or j == 0 for i, j in links) else None


class LinkNumbering:
    """A majority vote on whether the links of a list count `<s>` and `</s>`, over the lines read so far.

    Each sentence has one vote: the first of its lines whose links decide it. The source is not needed, because the last
    linked source index of a chart decoder is `</s>`.
    """

    def __init__(self) -> None:
        self._chart = self._phrase_based = 0
        self._behind = False  # whether an undecided line links the index right after the last target word
        self._voted: int | None = None

    @property
    def counts_bos_eos(self) -> bool | None:
        """Whether the links count `<s>` and `</s>` (chart decoder), or None without evidence so far.

        The majority decides, a tie counts as a chart decoder. Without votes, the answer is True if a line links the
        index right after the last target word.
        """
        if self._chart or self._phrase_based:
            return self._chart >= self._phrase_based
        return True if self._behind else None

    def add(self, sentence: int, links: PrintedLinks, target_length: int) -> None:
        """Add the links of a line, whose translation has `target_length` words."""
        if not links or sentence == self._voted:
            return
        # The source length at which the last linked source index would be `</s>`.
        decided = counts_bos_eos(links, max(i for i, _ in links) - 1, target_length)
        if decided is None:
            self._behind = self._behind or max(j for _, j in links) == target_length
            return
        self._voted = sentence
        self._chart += decided
        self._phrase_based += not decided

    def add_sentence(self, lines: Sequence[Hypothesis]) -> None:
        """Add the lines of a sentence, up to the first whose links decide it."""
        for line in lines:
            if line.sentence == self._voted:
                return
            if links := printed_alignment(line):
                self.add(line.sentence, links, len(tokens(line.text)))


def printed_alignment(line: Hypothesis) -> PrintedLinks | None:
    """Return the links after the total of a line, as printed, or None if the line has no alignment."""
    printed = [links for links in map(printed_links, line.fields[4:6]) if links is not None]
    return next((each for each in printed if each), printed[0] if printed else None)


def read_alignments(path: str, source_lengths: Sequence[int], target_lengths: Sequence[int]) -> Alignments:
    """Read the word alignment of a corpus, such as Moses' `aligned.grow-diag-final-and`.

    Args:
        path: file with one line `0-0 1-2 …` per sentence pair: source index and target index from 0. An empty line is
            a pair without links.
        source_lengths: number of tokens of each source sentence, in the order of the lines.
        target_lengths: number of tokens of each target sentence.

    Returns:
        The links of each pair.

    Raises:
        InputError: a line is not a list of links, a link is beyond the end of a sentence, or the file and the corpus
            differ in length.
    """
    alignments, pairs = Alignments(), len(source_lengths)
    numbers_of = _NumbersByText(alignments)
    for number, line in numbered_lines(path):
        place = f"{name_of(path)}:{number}"
        if number > pairs:
            raise InputError(f"{place}: more lines than the corpus, which has {pairs:,}")
        try:
            links = {numbers_of[part] for part in without_line_end(line).split(b" ") if part}
        except Fault:
            raise InputError(
                f"{place}: expected links such as '0-0 1-2', found {shown(decode(without_line_end(line)))}"
            ) from None
        source, target = source_lengths[number - 1], target_lengths[number - 1]
        given = map(alignments.distinct.__getitem__, links)
        if beyond := [link for link in given if link[0] >= source or link[1] >= target]:
            i, j = min(beyond)
            raise InputError(f"{place}: the link {i}-{j} is outside a sentence pair of {source} and {target} words")
        alignments.append(links)
    if len(alignments) < pairs:
        raise InputError(f"{name_of(path)} has {counted(len(alignments), 'line')}, the corpus has {pairs}")
    return alignments


class _NumbersByText(dict[bytes, int]):
    """Indices of links by their text. A corpus has few different texts, and each is parsed once."""

    def __init__(self, alignments: Alignments) -> None:
        super().__init__()
        self._alignments = alignments

    def __missing__(self, text: bytes) -> int:
        match = _LINK.fullmatch(decode(text))
        if not match:
            raise Fault("not a link")
        self[text] = self._alignments.number_of((int(match[1]), int(match[2])))
        return self[text]


def swapped(links: Alignment) -> Alignment:
    """Return the links with source and target swapped."""
    return frozenset((j, i) for i, j in links)


def format_links(links: Alignment) -> str:
    """Return a line that `read_alignments` can read, sorted by source index, then target index."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def printed_links(field: bytes) -> PrintedLinks | None:
    """Return the links in a field, as printed, or None if the field is not a word alignment.

    An empty field is a word alignment without links.
    """
    matches = [_LINK.fullmatch(part) for part in _parts(field)]
    return {(int(match[1]), int(match[2])) for match in matches if match} if all(matches) else None


def printed_phrases(field: bytes) -> list[Phrase] | None:
    """Return the phrases in a field, in its order, or None if the field is not a segmentation.

    An empty field is a segmentation without phrases.
    """
    matches = [_SEGMENT.fullmatch(part) for part in _parts(field)]
    if not all(matches):
        return None
    ranges = [match.groups() for match in matches if match]
    return [Phrase(int(first), int(last or first), int(start), int(end or start)) for first, last, start, end in ranges]


def describe_field(field: bytes) -> str:
    """Return the kind of a field after the total: `segmentation`, `alignment` (also if empty) or `other`."""
    parts = _parts(field)
    if parts and "=" in parts[0]:
        return "segmentation"
    return "other" if printed_links(field) is None else "alignment"


def _parts(field: bytes) -> list[str]:
    return tokens(decode(without_line_end(field)))
