"""Replacement lines for sentences without candidates, so that each source sentence gets exactly one line."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from moses_io.files.errors import InputError, counted
from moses_io.files.streams import name_of
from moses_io.files.text import encode, read_lines
from moses_io.nbest import SentenceList, check_id

MAX_MISSING = 10_000_000
"""Maximum number of consecutive sentences without candidates that get blank lines."""


@dataclass(frozen=True)
class Replacements:
    """Replacement lines for sentences without candidates.

    Attributes:
        sentences: number of source sentences, or a function that returns it and is called after the end of the list.
            None if unknown: then only gaps inside the list are detected.
        blank: whether to write an empty line for such a sentence.
        lines: one replacement line per source sentence, or None.
        live: whether the list comes from a pipe.
        name: name, in messages, of the text that has one line per source sentence.
    """

    sentences: int | Callable[[], int] | None = None
    blank: bool = False
    lines: list[str] | None = None
    live: bool = False
    name: str = "source"

    def line(self, sentence: int, place: str) -> bytes:
        """Return the line of a sentence without candidates.

        Raises:
            InputError: no replacement line is available.
        """
        if self.blank:
            return b"\n"
        if self.lines is None:
            hint = "--on-missing blank or FILE supplies its line"
            order = "If the ids are not in order, `validate --regroup` sorts them"
            raise InputError(f"{place}: sentence {sentence} has no candidates. {hint}. {order}")
        if sentence >= len(self.lines):
            raise InputError(f"{place}: sentence {sentence} has no candidates, and no line in the file of --on-missing")
        return encode(self.lines[sentence]) + b"\n"

    def check_end(self, last: SentenceList, sentences: int) -> None:
        """Raise `InputError` if sentences after the `last` one of a list are missing and have no replacement lines."""
        if last.sentence + 1 >= sentences or self.blank or self.lines is not None:
            return
        ends = f"the list ends at sentence {last.sentence}, expected sentences up to {sentences - 1}"
        hint = "" if self.live else ". --on-missing blank or FILE supplies the missing lines"
        raise InputError(f"{last.end}: {ends}. The decoder probably stopped early{hint}")


def read_replacements(source: str | None, sentences: int | None, on_missing: str) -> Replacements:
    """Return the `Replacements` for command line arguments.

    Args:
        source: path of the source text, or None.
        sentences: number of source sentences, used if there is no source text.
        on_missing: `error`, `blank`, or the path of a file with replacement lines.

    Raises:
        InputError: the file of replacement lines and the source differ in length.
    """
    if source is not None:
        sentences = len(read_lines(source))
    if on_missing in ("error", "blank"):
        return Replacements(sentences, blank=on_missing == "blank")
    lines = read_lines(on_missing)
    if sentences is not None and len(lines) != sentences:
        count = counted(len(lines), "line")
        raise InputError(f"{name_of(on_missing)} has {count}, there are {counted(sentences, 'source sentence')}")
    return Replacements(len(lines), lines=lines, name="file of --on-missing" if sentences is None else "source")


def complete(lists: Iterable[SentenceList], replacements: Replacements) -> Iterator[SentenceList | bytes]:
    """Yield the list of each sentence in the order of ids, and a replacement line for each sentence without a list.

    Raises:
        InputError: an id is smaller than the one before or beyond the source, or a sentence has neither candidates nor
            a replacement line.
    """
    expected, last = 0, None
    for sentence_list in lists:
        place = sentence_list.place
        if sentence_list.sentence < expected:
            fault = f"{place}: sentence {sentence_list.sentence} comes after sentence {expected - 1}"
            raise InputError(f"{fault}. `moses-rerank validate --regroup` sorts a list by id")
        if isinstance(replacements.sentences, int):
            check_id(sentence_list, replacements.sentences, replacements.name)
        yield from _fill(expected, sentence_list.sentence, replacements, place)
        yield sentence_list
        expected, last = sentence_list.sentence + 1, sentence_list
    sentences = (replacements.sentences() if callable(replacements.sentences) else replacements.sentences) or 0
    if last:
        replacements.check_end(last, sentences)
        yield from _fill(expected, sentences, replacements, f"{name_of(last.path)}, at its end")


def _fill(start: int, end: int, replacements: Replacements, place: str) -> Iterator[bytes]:
    """Yield the replacement lines of sentences `start` … `end` - 1.

    Raise `InputError` for more than `MAX_MISSING` blank lines: then an id in the list must be wrong.
    """
    if end - start > MAX_MISSING and replacements.blank:
        fault = f"{end - start:,} sentences in a row, {start} to {end - 1}, have no candidates"
        raise InputError(f"{place}: {fault}, expected at most {MAX_MISSING:,}")
    for missing in range(start, end):
        yield replacements.line(missing, place)
