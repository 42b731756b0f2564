"""Tokenization and case of the text of a Moses system, and natural text with them."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import sacremoses

from features.models.pretrained.languages import two_letters
from features.models.pretrained.options import Options, parse_options
from features.models.pretrained.text import Restored
from features.progress import log
from features.request import parse_requests, split_values
from moses_io.files.errors import InputError, shown
from moses_io.files.text import empty_file, read_lines, tokens

REPRODUCED = 0.95
"""Minimum fraction of lines that are the same after restoring and tokenizing, else a warning is logged."""

SAMPLE = 300
"""Maximum number of lines from which a form is inferred."""

CASES = ("keep", "lower", "first")
"""Case of tokenized text: as in natural text, lower-case, or with a lower-case first letter."""


class Form(NamedTuple):
    """Settings of Moses' tokenizer and of the case.

    Attributes:
        case: one of `CASES`.
        escaped: whether characters such as `'` and `|` are escaped.
        hyphens: whether words are split at hyphens, `@-@`.
    """

    case: str = "keep"
    escaped: bool = True
    hyphens: bool = False

    @property
    def text(self) -> str:
        """The form as text, for example `lower+escaped`."""
        return "+".join([self.case, *(["escaped"] if self.escaped else []), *(["hyphens"] if self.hyphens else [])])


def parse_form(text: str) -> Form:
    """Parse the text of a form. Raises `InputError` if it has an unknown part."""
    case, *parts = text.split("+")
    if case not in CASES or not {"escaped", "hyphens"} >= set(parts):
        raise InputError(f"form {shown(text)}: expected {'|'.join(CASES)}, then optionally +escaped and +hyphens")
    return Form(case, "escaped" in parts, "hyphens" in parts)


class Tokenizer:
    """Function from natural text to tokens of a form.

    Args:
        form: the form.
        language: two-letter code of the language, empty for English.
    """

    def __init__(self, form: Form, language: str) -> None:
        self._form, self._moses = form, sacremoses.MosesTokenizer(lang=language or "en")

    def __call__(self, text: str) -> tuple[str, ...]:
        """Return the tokens."""
        form = self._form
        if form.case == "lower":
            text = text.lower()
        elif form.case == "first":
            text = text[:1].lower() + text[1:]
        found = self._moses.tokenize(text, return_str=True, aggressive_dash_splits=form.hyphens, escape=form.escaped)
        return tuple(tokens(found))


def find_form(lines: Sequence[str], language: str) -> tuple[Form, float]:
    """Return the form of tokenized text, and the fraction of lines that restoring and tokenizing does not change.

    Args:
        lines: lines of tokenized text, of which the first `SAMPLE` are used.
        language: two-letter code of the language, empty for English.
    """
    sample = [words for line in lines if (words := tokens(line))][:SAMPLE]
    restored = Restored(Options(), language)
    texts = [restored(words) for words in sample]
    best, max_same = Form(), -1
    for case, escaped, hyphens in itertools.product(CASES, (True, False), (False, True)):
        form = Form(case, escaped, hyphens)
        tokenizer = Tokenizer(form, language)
        same = sum(tokenizer(text) == tuple(words) for text, words in zip(texts, sample, strict=True))
        if same > max_same:
            best, max_same = form, same
    return best, max_same / len(sample) if sample else 1.0


def with_form(model: str, path: str, change: Callable[[str], str] = str) -> str:
    """Return a model `hf:DIR[…]` with option `form`, by default the form of a tokenized text of the target language.

    Each line of the text is changed by a function before it is compared.

    Raises:
        InputError: an option is wrong, or the text cannot be read or is empty.
    """
    (request,) = parse_requests([model])
    folder, options = parse_options(request.argument)
    if options.form:
        return model
    lines = [change(line) for line in read_lines(path)]
    if not any(map(tokens, lines)):
        raise empty_file(path)
    form, same = find_form(lines, two_letters(options.language or ("", *options.languages)[-1]))
    log.info(f"{folder}: translations are tokenized as {form.text}, which {same:.0%} of the lines of {path} are")
    if same < REPRODUCED:
        log.warning(f"{path}: {1 - same:.0%} of the lines are tokenized otherwise than translations of {folder}")
    brackets = split_values(request.argument)[1]
    return f"{request.kind}:{folder}[{','.join([*brackets, f'form={form.text}'])}]"
