"""Alignments made by people, and how far others are from them: alignment error rate."""

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
    """What alignment error rate is made of (Och & Ney 2003, 6.2), which adds up over sentences.

    A are the links that are measured, S the sure ones of people, and P the possible ones, which S is part of.
    """

    sentences: int = 0
    links: int = 0  # |A|
    sure: int = 0  # |S|
    possible: int = 0  # |P|
    in_sure: int = 0  # |A ∩ S|
    in_possible: int = 0  # |A ∩ P|

    def plus(self, other: "LinkCounts") -> "LinkCounts":
        """Return the sum."""
        return LinkCounts(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def error_rate(self) -> float:
        """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 1 where no link is right."""
        return 1 - (self.in_sure + self.in_possible) / (self.links + self.sure)

    @property
    def precision(self) -> float:
        """|A ∩ P| / |A|; 0 without links."""
        return self.in_possible / max(1, self.links)

    @property
    def recall(self) -> float:
        """|A ∩ S| / |S|."""
        return self.in_sure / self.sure


class _GoldSentence(NamedTuple):
    line: int  # the first one that has it
    links: dict[tuple[int, int], tuple[bool, int]]  # of each link whether it is sure, and its line


_Entry = tuple[int, tuple[int, int] | None, bool]
"""A sentence, a link, words from 0, or none for a word that is linked with nothing, and whether the link is sure."""


@dataclass(frozen=True)
class Gold:
    """The gold alignments of a text, of all its sentences or of some.

    Attributes:
        name: how messages name the file.
        base: number of the first word, as the file has it.
        lines: how many there are, of a file with a line a sentence; else None.
        sentences: by their numbers, from 0, those that have lines.
    """

    name: str
    base: int
    lines: int | None
    sentences: Mapping[int, _GoldSentence]

    def counts(self, sentence: int, links: Alignment, source: int, target: int) -> LinkCounts:
        """Compare the links of a sentence, from 0; all counts are 0 where people have not aligned it.

        Raises:
            InputError: a gold link is beyond the words of source and target, or the file ends before.
        """
        if self.lines is not None and sentence >= self.lines:
            raise InputError(f"{self.name} has {counted(self.lines, 'line')}, the text has more")
        if sentence not in self.sentences:
            return LinkCounts()
        gold = self.sentences[sentence].links
        for (i, j), (_, line) in gold.items():
            if i >= source or j >= target:
                hint = "" if self.base else "; if it counts words from 1, say --gold-base 1"
                link = (
                    f"the link {i + self.base}-{j + self.base} is beyond the {source} source and {target} target words"
                )
                raise InputError(f"{self.name}:{line}: {link}{hint}")
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
        """Refuse a file that goes on behind the last of so many sentences of the text, with an `InputError`."""
        if self.lines is not None and self.lines > sentences:
            raise InputError(f"{self.name} has {counted(self.lines, 'line')}, the text has {sentences}")
        last = max(self.sentences)
        if last >= sentences:
            place = f"{self.name}:{self.sentences[last].line}"
            raise InputError(f"{place}: sentence {last + 1}, the text has {counted(sentences, 'line')}")


def read_gold(path: str, base: int) -> Gold:
    """Read gold alignments, in one of two forms, which is told by the first line that is not empty.

    A line a sentence: sure links `3-4` or `3-4:S`, possible ones `3p4`, `3?4` or `3-4:P`, source word and target word.
    A line a link, as in NAACL 2003 and WPT 2005: number of the sentence, of the source word and of the target word,
    all from 1, S (if nothing stands there) or P, and a confidence, which is not read. Word 0 is no word: such a link
    says only that people looked at the sentence; sentences without a line are not measured. A link that is sure and
    possible is sure.

    Args:
        path: of the file.
        base: number of the first word in lines of the first form.

    Raises:
        InputError: a line of neither form, or of the other one; a word below the base; no sure link at all.
    """
    sentences: dict[int, _GoldSentence] = {}
    by_link, lines = None, 0
    for lines, line in numbered_lines(path):
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
        raise InputError(f"{name_of(path)}: no sure link, without which there is no alignment error rate")
    if by_link:
        return Gold(name_of(path), base=1, lines=None, sentences=sentences)
    empty = {number: _GoldSentence(number + 1, {}) for number in range(lines)}
    return Gold(name_of(path), base=base, lines=lines, sentences=empty | sentences)


def _links_of(parts: list[str], sentence: int, base: int) -> list[_Entry]:
    """Read a line of links."""
    entries: list[_Entry] = []
    for part in parts:
        match = _LINK.fullmatch(part)
        if not match:
            raise Fault(f"expected {_FORMS}, found {shown(part)}")
        source, mark, target, typed, kind = match.groups()
        i, j = int(source) - base, int(target or typed) - base
        if min(i, j) < 0:
            raise Fault(f"the link {part} has word 0, the first one is {base}")
        entries.append((sentence, (i, j), (kind or mark) in ("-", "S")))
    return entries


def _link_of(parts: list[str]) -> list[_Entry]:
    """Read a line of one link; an empty line has none."""
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
