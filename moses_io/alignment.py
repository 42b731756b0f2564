"""Segmentation and word alignment: of a hypothesis in the fields behind its total, of a corpus in a file of its own."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, tokens, without_line_end
from moses_io.hypothesis import Hypothesis

Alignment = frozenset[tuple[int, int]]
"""Links (source word, target word) from 0."""
PrintedLinks = set[tuple[int, int]]
"""Links as printed in the list; chart decoders also count `<s>` and `</s>`."""

_SEGMENT = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?=([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")

BACKWARDS = "ranges that run backwards"
BEYOND_SOURCE = "phrases beyond the end of the source"
BEYOND_TRANSLATION = "phrases beyond the end of the translation"
OVERLAPPING = "overlapping phrases"
"""Faults of a segmentation, as messages name them."""


class Phrase(NamedTuple):
    """First and last source word, first and last target word of a phrase, from 0."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


def segmentation(line: Hypothesis) -> list[Phrase] | None:
    """Return the phrases in target order, or None where the list has none."""
    for phrases in map(printed_phrases, line.fields[4:6]):
        if phrases:
            return sorted(phrases, key=lambda phrase: phrase.target_start)
    return None


def segmentation_faults(phrases: Sequence[Phrase], source_length: int | None, target_length: int) -> list[str]:
    """Return each fault of a segmentation that no decoder prints.

    Args:
        phrases: as returned by `segmentation`.
        source_length: words of the source, None if it is not known.
        target_length: words of the translation.
    """
    if any(each.source_start > each.source_end or each.target_start > each.target_end for each in phrases):
        return [BACKWARDS]
    in_source_order = sorted(phrases)
    overlapping = any(after.source_start <= last.source_end for last, after in pairwise(in_source_order))
    faults = []
    if source_length is not None and any(each.source_end >= source_length for each in phrases):
        faults.append(BEYOND_SOURCE)
    if not _covers(phrases, target_length):
        if any(each.target_end >= target_length for each in phrases):
            faults.append(BEYOND_TRANSLATION)
        overlapping |= any(after.target_start <= last.target_end for last, after in pairwise(phrases))
    return faults + [OVERLAPPING] * overlapping


def _covers(phrases: Sequence[Phrase], target_length: int) -> bool:
    """Return whether phrases in target order cover each word of the translation once.

    Moses prints a phrase without target words (as of `-drop-unknown`) like a phrase of one word: the range is the index
    of the next target word, which belongs to the next phrase or is that behind the last word.
    """
    end = 0  # target words covered so far
    next_starts = [*(each.target_start for each in phrases), target_length][1:]
    for phrase, next_start in zip(phrases, next_starts, strict=True):
        if phrase.target_start != end:
            return False
        if phrase.target_end > phrase.target_start or next_start > end:
            end = phrase.target_end + 1
    return end == target_length


def word_alignment(
    line: Hypothesis, source_length: int, target_length: int, of_list: bool | None = None
) -> Alignment | None:
    """Return the links between words, or None if the list has none; arguments and errors are those of `fitted`."""
    links = printed_alignment(line)
    return None if links is None else fitted(links, source_length, target_length, of_list)[0]


def fitted(
    links: PrintedLinks, source_length: int, target_length: int, of_list: bool | None = None
) -> tuple[Alignment, bool]:
    """Return links between words as indices from 0, and whether others were dropped that point behind the end.

    Links of chart decoders, which count `<s>` and `</s>`, are moved back by one, and those of `<s>` and `</s>` are
    dropped. Links of other decoders are not moved, and those that point one or two words behind the end of the source
    or of the translation are dropped.

    Args:
        links: as printed.
        source_length: words of the source.
        target_length: words of the translation.
        of_list: whether the list counts `<s>` and `</s>` (`LinkNumbering.counts_marks`), for links that do not decide
            it themselves. If it is None, such links are taken for those of a chart decoder if they point behind the
            end, and are not moved otherwise.

    Raises:
        Fault: a link points more than two words behind the end, which no decoder prints.
    """
    behind = any(i >= source_length or j >= target_length for i, j in links)
    if any(i > source_length + 1 or j > target_length + 1 for i, j in links):
        raise Fault(f"word alignment beyond the {source_length} source and {target_length} target words")
    own = counts_marks(links, source_length, target_length)
    decided = of_list if own is None else own
    moved = behind if decided is None else decided
    indices = {(i - 1, j - 1) for i, j in links} if moved else links
    within = frozenset((i, j) for i, j in indices if 0 <= i < source_length and 0 <= j < target_length)
    return within, behind and not moved


def counts_marks(links: PrintedLinks, source_length: int, target_length: int) -> bool | None:
    """Return whether links count `<s>` and `</s>` (chart decoders); None if this line does not decide it.

    With Moses' glue grammar all lines link `</s>` with `</s>`, and `<s>` with `<s>`. With another one no line links a
    word with index 0, which is that of `<s>`.
    """
    if (source_length + 1, target_length + 1) in links:
        return True
    return False if any(i == 0 or j == 0 for i, j in links) else None


class LinkNumbering:
    """Decides, from the lines of a list read so far, whether its links count `<s>` and `</s>`.

    Each sentence has one vote, that of its first line whose links decide it. The source is not needed: of the lines of
    chart decoders, the last source word with a link is `</s>`.
    """

    def __init__(self) -> None:
        self._chart = self._phrase_based = 0
        self._behind = False  # a line that does not decide it points right behind the last target word
        self._voted: int | None = None

    @property
    def counts_marks(self) -> bool | None:
        """Whether the list is one of a chart decoder; None before a line was read that points to either.

        Most votes decide; with as many votes for either, or without votes but with a line that points right behind
        the last target word, the list is taken for one of a chart decoder.
        """
        if self._chart or self._phrase_based:
            return self._chart >= self._phrase_based
        return True if self._behind else None

    def add(self, sentence: int, links: PrintedLinks, target_length: int) -> None:
        """Add the links of a line and the number of words of its translation."""
        if not links or sentence == self._voted:
            return
        decided = counts_marks(links, max(i for i, _ in links) - 1, target_length)
        if decided is None:
            self._behind = self._behind or max(j for _, j in links) == target_length
            return
        self._voted = sentence
        self._chart += decided
        self._phrase_based += not decided

    def add_sentence(self, lines: Sequence[Hypothesis]) -> None:
        """Add all lines of a sentence; they are read up to the first that decides it."""
        for line in lines:
            if line.sentence == self._voted:
                return
            if links := printed_alignment(line):
                self.add(line.sentence, links, len(tokens(line.text)))


def printed_alignment(line: Hypothesis) -> PrintedLinks | None:
    """Return the links that a line has behind its total, as they are printed; None where it has none."""
    printed = [links for links in map(printed_links, line.fields[4:6]) if links is not None]
    return next((each for each in printed if each), printed[0] if printed else None)


def read_alignments(path: str, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Alignment]:
    """Return the links of each sentence pair of a corpus, from a file such as Moses' `aligned.grow-diag-final-and`.

    Args:
        path: of lines `0-0 1-2 …`, source word and target word from 0; an empty line has no links.
        pairs: source and target of the corpus, a line of the file each.

    Raises:
        InputError: a line is not one of links, or has one beyond its sentences; other lines than pairs.
    """
    alignments: list[Alignment] = []
    for number, line in numbered_lines(path):
        links, place = printed_links(line), f"{name_of(path)}:{number}"
        if number > len(pairs):
            raise InputError(f"{place}: expected {counted(len(pairs), 'line')}, as the corpus has")
        if links is None:
            raise InputError(
                f"{place}: expected links such as '0-0 1-2', found {shown(decode(without_line_end(line)))}"
            )
        source, target = map(len, pairs[number - 1])
        beyond = next((f"{i}-{j}" for i, j in sorted(links) if i >= source or j >= target), "")
        if beyond:
            raise InputError(f"{place}: the link {beyond} is beyond the {source} source and {target} target words")
        alignments.append(frozenset(links))
    if len(alignments) < len(pairs):
        raise InputError(f"{name_of(path)} has {counted(len(alignments), 'line')}, the corpus has {len(pairs)}")
    return alignments


def turned(links: Alignment) -> Alignment:
    """Return the links of the target with the source."""
    return frozenset((j, i) for i, j in links)


def format_links(links: Alignment) -> str:
    """Return the links as `read_alignments` takes them, in the order of source words, then of target words."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def printed_links(field: bytes) -> PrintedLinks | None:
    """Return the links of a word alignment as they are printed, or None for a field that holds something else."""
    matches = [_LINK.fullmatch(part) for part in _parts(field)]
    return {(int(match[1]), int(match[2])) for match in matches if match} if all(matches) else None


def printed_phrases(field: bytes) -> list[Phrase] | None:
    """Return the phrases of a segmentation in the order of the field, or None for a field that holds something else."""
    matches = [_SEGMENT.fullmatch(part) for part in _parts(field)]
    if not all(matches):
        return None
    ranges = [match.groups() for match in matches if match]
    return [Phrase(int(first), int(last or first), int(start), int(end or start)) for first, last, start, end in ranges]


def describe_field(field: bytes) -> str:
    """Name what a field behind the total holds: `segmentation`, `alignment` or `other`."""
    parts = _parts(field)
    if parts and "=" in parts[0]:
        return "segmentation"
    return "other" if printed_links(field) is None else "alignment"


def _parts(field: bytes) -> list[str]:
    return tokens(decode(without_line_end(field)))
