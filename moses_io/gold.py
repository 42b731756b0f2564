"""Manual (gold) word alignments, and the alignment error rate (AER) of other alignments."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moses_io.alignment import Alignment
from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, number, without_line_end, words

_LINK = re.compile("([0-9]{1,9})(?:([-p?])([0-9]{1,9})|-([0-9]{1,9}):([SP]))")
_NUMBER = re.compile("[0-9]{1,9}")
_FORMS = "links such as '3-4 3p5', or sentence, source word, target word and S or P such as '18 1 2 P'"


class LinkCounts(NamedTuple):
    """The counts of the alignment error rate (Och & Ney 2003, section 6.2), which are summed over sentences.

    A is the set of evaluated links, S the set of sure gold links, and P the set of possible gold links. P contains S.
    """

    sentences: int = 0
    links: int = 0  # |A|
    sure: int = 0  # |S|
    possible: int = 0  # |P|
    in_sure: int = 0  # |A ∩ S|
    in_possible: int = 0  # |A ∩ P|

    def plus(self, other: "LinkCounts") -> "LinkCounts":
        """Return the sum of both counts."""
        return LinkCounts(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def error_rate(self) -> float:
        """Alignment error rate, 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|). It is 1 if no link is correct."""
        return 1 - (self.in_sure + self.in_possible) / (self.links + self.sure)

    @property
    def precision(self) -> float:
        """Precision, |A ∩ P| / |A|, or 0 without links."""
        return self.in_possible / max(1, self.links)

    @property
    def recall(self) -> float:
        """Recall, |A ∩ S| / |S|."""
        return self.in_sure / self.sure


class _GoldSentence(NamedTuple):
    line: int  # first line of the sentence
    links: dict[tuple[int, int], tuple[bool, int]]  # for each link: whether it is sure, and its line


_Entry = tuple[int, tuple[int, int] | None, bool]
"""(sentence, link, sure). Indices are from 0. The link is None for a word that is annotated as unaligned."""


@dataclass(frozen=True)
class Gold:
    """The gold alignments of all or some sentences of a text.

    Attributes:
        name: of the file, for messages.
        base: index of the first word of a sentence in the file, 0 or 1.
        lines: number of lines of a file with one line per sentence, None for a file with one line per link.
        sentences: annotated sentences by their index, from 0.
    """

    name: str
    base: int
    lines: int | None
    sentences: Mapping[int, _GoldSentence]

    def counts(self, sentence: int, links: Alignment, source: int, target: int) -> LinkCounts:
        """Compare the links of a sentence with its gold links.

        Args:
            sentence: index from 0.
            links: the links to evaluate.
            source: number of source words.
            target: number of target words.

        Returns:
            The counts of the sentence, all 0 if it is not annotated.

        Raises:
            InputError: a gold link is beyond the end of source or target, or the file has fewer lines than the text.
        """
        if self.lines is not None and sentence >= self.lines:
            raise InputError(f"{self.name} has {counted(self.lines, 'line')}, the text has more")
        if sentence not in self.sentences:
            return LinkCounts()
        gold = self.sentences[sentence].links
        for (i, j), (_, line) in gold.items():
            if i >= source or j >= target:
                hint = "" if self.base else ". If word indices start at 1, use --gold-base 1"
                pair = f"a sentence pair of {source} and {target} words"
                raise InputError(
                    f"{self.name}:{line}: the link {i + self.base}-{j + self.base} is outside {pair}{hint}"
                )
        sure = {link for link, (is_sure, _) in gold.items() if is_sure}
        return LinkCounts(
            sentences=1,
            links=len(links),
            sure=len(sure),
            possible=len(gold),
            in_sure=len(links & sure),
            in_possible=len(links & gold.keys()),
        )

    def check_end(self, sentences: int) -> None:
        """Raise `InputError` if the file has more sentences than the text, which has `sentences`."""
        if self.lines is not None and self.lines > sentences:
            raise InputError(f"{self.name} has {counted(self.lines, 'line')}, the text has {sentences}")
        last = max(self.sentences)
        if last >= sentences:
            place = f"{self.name}:{self.sentences[last].line}"
            raise InputError(f"{place}: sentence {last + 1} is beyond the text, which has {counted(sentences, 'line')}")


def read_gold(path: str, base: int) -> Gold:
    """Read gold alignments in one of two formats, which is detected from the first line that is not empty.

    * One line per sentence: sure links `3-4` or `3-4:S`, possible links `3p4`, `3?4` or `3-4:P`, each with the index of
      the source word and of the target word.
    * One line per link, as in the shared tasks of NAACL 2003 and WPT 2005: the numbers of the sentence, the source word
      and the target word, all from 1, then S (default) or P, then an optional confidence, which is ignored. Number 0
      marks an unaligned word: the line has no link, but the sentence counts as annotated. Sentences without a line are
      not evaluated.

    A link that is marked both as sure and as possible is sure.

    Args:
        path: of the file.
        base: index of the first word in the format with one line per sentence, 0 or 1.

    Raises:
        InputError: a line does not have the detected format, an index is below `base`, or the file has no sure link.
    """
    sentences: dict[int, _GoldSentence] = {}
    by_link, lines = None, 0
    for lines, line in numbered_lines(path):  # after the loop, `lines` is the number of lines
        parts = words(decode(without_line_end(line)))
        if parts and by_link is None:
            by_link = _NUMBER.fullmatch(parts[0]) is not None
        try:
            entries = _link_of(parts) if by_link else _links_of(parts, lines - 1, base)
        except Fault as fault:
            raise InputError(f"{name_of(path)}:{lines}: {fault}") from None
        for sentence, link, sure in entries:
            links = sentences.setdefault(sentence, _GoldSentence(lines, {})).links
            if link:
                links[link] = (sure or (link in links and links[link][0]), lines)
    if not any(sure for each in sentences.values() for sure, _ in each.links.values()):
        raise InputError(f"{name_of(path)}: no sure link, which the alignment error rate needs")
    if by_link:
        return Gold(name_of(path), base=1, lines=None, sentences=sentences)
    # In this format an empty line is an annotated sentence without links.
    empty = {number: _GoldSentence(number + 1, {}) for number in range(lines)}
    return Gold(name_of(path), base=base, lines=lines, sentences=empty | sentences)


def _links_of(parts: list[str], sentence: int, base: int) -> list[_Entry]:
    entries: list[_Entry] = []
    for part in parts:
        match = _LINK.fullmatch(part)
        if not match:
            raise Fault(f"expected {_FORMS}, found {shown(part)}")
        source, mark, target, typed, kind = match.groups()
        i, j = int(source) - base, int(target or typed) - base
        if min(i, j) < 0:
            raise Fault(f"the link {part} has index 0, but word indices start at {base}")
        entries.append((sentence, (i, j), (kind or mark) in ("-", "S")))
    return entries


def _link_of(parts: list[str]) -> list[_Entry]:
    if not parts:
        return []
    numbers, others = parts[:3], parts[3:]
    kinds = [part for part in others if part in ("S", "P")]
    confidences = [part for part in others if number(part) is not None]
    well = len(numbers) == 3 and all(map(_NUMBER.fullmatch, numbers)) and int(numbers[0]) > 0
    if not well or max(len(kinds), len(confidences)) > 1 or len(kinds) + len(confidences) < len(others):
        raise Fault(f"expected {_FORMS}, found {shown(' '.join(parts))}")
    sentence, i, j = (int(each) - 1 for each in numbers)
    return [(sentence, (i, j) if min(i, j) >= 0 else None, "P" not in kinds)]
