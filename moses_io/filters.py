"""Filters: postprocessing of candidates and references before a metric compares them.

Also detects forms of text, such as subwords, so that a warning can name the filter that a list or a reference needs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.streams import Lines
from moses_io.files.text import MARK, read_references, tokens, unescaped

Filter = Callable[[str], str]

_SUBWORD_END = re.compile("@@( |$)")
_LANGUAGE = re.compile("([a-z]{2,3})?")


def _join_subwords(_: str) -> Filter:
    return lambda text: _SUBWORD_END.sub("", text)


def _join_sentencepiece(_: str) -> Filter:
    """Undo SentencePiece and OpenNMT's spacers: drop spaces, then turn `▁` into a space. Keep text without `▁`."""
    return lambda text: text.replace(" ", "").replace("▁", " ").strip(" ") if "▁" in text else text


def _join_at_joiners(_: str) -> Filter:
    """Undo OpenNMT's joiners: `￭` at the start of a token joins it to the previous token, at the end to the next."""

    def join(text: str) -> str:
        if "￭" not in text:
            return text
        words: list[str] = []
        joins = True  # the first token starts the list: there is no token before it
        for token in tokens(text):
            part = token.strip("￭")
            if joins or token.startswith("￭"):
                words[-1:] = ["".join([*words[-1:], part])]
            else:
                words.append(part)
            joins = token.endswith("￭")
        return " ".join(words)

    return join


def _drop_marks(_: str) -> Filter:
    return lambda text: MARK.sub("", text).strip(" ")


def _first_factors(_: str) -> Filter:
    return lambda text: " ".join(token.split("|", 1)[0] or token for token in tokens(text))


def _unescape(_: str) -> Filter:
    return unescaped


def _detruecase(_: str) -> Filter:
    import sacremoses

    moses = sacremoses.MosesDetruecaser()
    return lambda text: str(moses.detruecase(text, return_str=True))


def _detokenize(language: str) -> Filter:
    import sacremoses

    moses = sacremoses.MosesDetokenizer(lang=language or "en")
    return lambda text: str(moses.detokenize(tokens(text), unescape=False))


FILTERS: dict[str, tuple[Callable[[str], Filter], str]] = {
    "marks": (_drop_marks, "remove segmentation marks such as |0-1|"),
    "factors": (_first_factors, "keep the first factor of word|pos|…"),
    "debpe": (_join_subwords, "join subwords that end in @@ (subword-nmt)"),
    "desentencepiece": (_join_sentencepiece, "join subwords with ▁ at the start of a word (SentencePiece)"),
    "dejoiner": (_join_at_joiners, "join subwords and punctuation at ￭ (OpenNMT Tokenizer)"),
    "deescape": (_unescape, "turn &amp;, &#124;, &apos; and the like into characters"),
    "detruecase": (_detruecase, "capitalize the start of a sentence (sacremoses)"),
    "detokenize": (_detokenize, "join punctuation to words of English, or with detokenize:de of German (sacremoses)"),
}


@dataclass(frozen=True)
class Filters:
    """A chain of filters.

    Attributes:
        text: names of the filters in the order of application, such as `debpe,deescape,detokenize:en`. Empty by
            default.

    Raises:
        InputError: a filter is unknown or has a wrong argument.
    """

    text: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputError(f"filter: expected names such as 'debpe,deescape', found {shown(self.text)}")
        for part in self._parts:
            name, _, argument = part.partition(":")
            if name not in FILTERS:
                raise InputError(f"unknown filter {shown(name)}{nearest(name, list(FILTERS))}")
            if argument and name != "detokenize":
                raise InputError(f"filter {shown(part)}: {name} takes no argument")
            if not _LANGUAGE.fullmatch(argument):
                raise InputError(f"filter {shown(part)}: expected the code of a language, such as de")

    @property
    def _parts(self) -> list[str]:
        return self.text.split(",") if self.text else []

    @cached_property
    def _chain(self) -> list[Filter]:
        return [FILTERS[part.partition(":")[0]][0](part.partition(":")[2]) for part in self._parts]

    @property
    def marks(self) -> bool:
        """Whether segmentation marks are removed."""
        return "marks" in self._parts

    @property
    def signature(self) -> str:
        """Part of a signature that names the filters, empty if there are none."""
        return f"|filter:{self.text}" if self.text else ""

    def references(self, paths: Sequence[str | Lines]) -> list[list[str]]:
        """Read references and return their filtered lines. Raises `InputError` if the files differ in length."""
        return [[self(line) for line in lines] for lines in read_references(paths)]

    def __call__(self, text: str) -> str:
        """Return the filtered line."""
        for each in self._chain:
            text = each(text)
        return text


@dataclass(frozen=True)
class Form:
    """A form of text that a filter can undo, detected by the fraction of lines that have it.

    Attributes:
        filter: name of the filter, a key of `FILTERS`.
        name: name of the form in messages.
        effect: effect of the filter, in messages.
        marker: string that each line of this form contains.
        is_in: whether a line with the marker has this form.
        least: a text has this form if more than this fraction of its lines, 0 to 1, do. In rarer lines the marker is
            taken for an ordinary word.
    """

    filter: str
    name: str
    effect: str
    marker: str
    is_in: Callable[[str], object]
    least: float


def _is_factored(line: str) -> bool:
    """Return whether more than half of the tokens have a bar inside."""
    words = tokens(line)
    return 2 * sum("|" in word[1:-1] for word in words) > len(words)


FACTORS = Form("factors", "factors such as word|pos", "keeps the first one", "|", _is_factored, 0.5)
SUBWORDS = (
    Form("debpe", "subwords that end in @@", "joins them", "@@", re.compile("[^ ]@@( |$)").search, 0.01),
    Form("desentencepiece", "subwords with ▁", "joins them", "▁", re.compile("(^| )▁").search, 0.01),
    Form("dejoiner", "subwords with the joiner ￭", "joins them", "￭", re.compile("(^| )￭|￭( |$)").search, 0.01),
)


class Forms:
    """Counter of the lines of each form in a text. `form in forms` is true if the text has the form."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._lines = 0
        self._counts = Counter[str]()
        self.add_all(lines)

    def add_all(self, lines: Iterable[str]) -> None:
        """Count the forms of several lines."""
        for line in lines:
            self.add(line)

    def add(self, line: str) -> None:
        """Count the forms of a line."""
        self._lines += 1
        for form in (FACTORS, *SUBWORDS):
            if form.marker in line and form.is_in(line):
                self._counts[form.filter] += 1

    def __contains__(self, form: Form) -> bool:
        return self._counts[form.filter] > form.least * self._lines


def advice(texts: Mapping[str, Forms], references: Forms) -> list[str]:
    """Return a message for each form that only texts or only references have, and for subwords in both.

    Args:
        texts: forms of the texts that are compared with the references, by their names in messages.
        references: forms of all references together.
    """
    messages = []
    for form in (FACTORS, *SUBWORDS):
        have = [name for name, counted in texts.items() if form in counted]
        lack = [name for name in texts if name not in have]
        hint = f"The filter '{form.filter}' {form.effect}"
        if form not in references and have:
            messages.append(f"{form.name} in {', '.join(have)}, not in the reference: they will not match. {hint}")
        if form in references and lack:
            messages.append(f"{form.name} in the reference, not in {', '.join(lack)}: they will not match. {hint}")
        if form in references and have and form in SUBWORDS:
            both = f"{', '.join(have)} and the reference"
            messages.append(f"{form.name} in {both}: metrics count subwords, not words. {hint}")
    return messages
