"""The argument of features `hf` and `comet`: a folder, and in brackets languages and options."""

from collections.abc import Sequence
from dataclasses import dataclass

from features.request import split_values
from moses_io.files.errors import InputError, at, counted, nearest, shown
from moses_io.files.text import read_lines
from moses_io.filters import Filters

NATURAL, TOKENS = "natural", "tokens"
SOURCE, CANDIDATE = "{source}", "{candidate}"
"""Placeholders of a template."""


@dataclass(frozen=True)
class Options:
    """Languages and options of a pretrained model.

    Attributes:
        languages: source and target language, or empty.
        text: form of the text that the model reads: `natural`, `tokens` (as in the list), or names of filters joined
            by `+`.
        language: language of the candidates for the detokenizer, empty for the target language.
        template: file with the text around source and candidate, or empty for none.
        truecaser: file with a truecasing model of Moses, applied to the candidates, or empty for none.
        form: tokenization and case of the model's own translations (`features.models.pretrained.form`), or empty.
        encoder: folder with the encoder of a COMET model, or empty for its default.
    """

    languages: tuple[str, ...] = ()
    text: str = NATURAL
    language: str = ""
    template: str = ""
    truecaser: str = ""
    form: str = ""
    encoder: str = ""


NAMES = ("text", "language", "template", "truecaser", "form")
"""Options of feature `hf`."""


def parse_options(argument: str, names: Sequence[str] = NAMES, kind: str = "hf") -> tuple[str, Options]:
    """Parse `DIR`, `DIR[SOURCE,TARGET]` or `DIR[SOURCE,TARGET,NAME=VALUE,…]`.

    Args:
        argument: the text to parse.
        names: names of the options that the kind has.
        kind: kind of the feature, for messages.

    Raises:
        InputError: an unknown or repeated option, an unknown filter, or a wrong number of languages.
    """
    folder, parts = split_values(argument)
    languages = tuple(part for part in parts if "=" not in part)
    if len(languages) not in (0, 2):
        expected = f"expected {kind}:DIR[SOURCE,TARGET]"
        raise InputError(f"{folder}: {expected}, found {counted(len(languages), 'language')}")
    given: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in parts if "=" in part):
        if name not in names:
            raise InputError(f"{folder}: unknown option {shown(name)}{nearest(name, list(names))}")
        if name in given or not value:
            raise InputError(f"{folder}: option {shown(name)} {'occurs twice' if value else 'has no value'}")
        given[name] = value
    options = Options(languages, **given)
    with at(f"{folder}: option text: "):
        Filters(filters_of(options))
    if options.language and not _is_language(options.language):
        raise InputError(f"{folder}: option language: {shown(options.language)} is not a code of a language")
    if options.truecaser and options.text != NATURAL:
        raise InputError(f"{folder}: option 'truecaser' needs text={NATURAL}, found text={options.text}")
    return folder, options


def _is_language(code: str) -> bool:
    import langcodes  # of the extra `hf`, which COMET does not need

    valid: bool = langcodes.tag_is_valid(code)
    return valid


def filters_of(options: Options) -> str:
    """Return the filters that an option `text` names, empty for `natural` and `tokens`."""
    return "" if options.text in (NATURAL, TOKENS) else options.text.replace("+", ",")


@dataclass(frozen=True)
class Template:
    """Text around source and candidate.

    The text before the candidate is the input of an encoder or the prompt of a language model. The text after the
    candidate, which language models only can have, is scored with it.

    Attributes:
        prompt: text before the candidate, with `{source}`.
        end: text after the candidate.
    """

    prompt: str = ""
    end: str = ""

    def before(self, source: str) -> str:
        """Return the text before the candidates of a source sentence."""
        return self.prompt.replace(SOURCE, source)


def read_template(path: str) -> Template:
    """Read a template with `{source}`, and optionally `{candidate}` after it. The last line end is left out.

    Raises:
        InputError: the file cannot be read, or its placeholders are missing, repeated or in the wrong order.
    """
    text = "\n".join(read_lines(path))
    prompt, _, end = text.partition(CANDIDATE)
    if prompt.count(SOURCE) != 1 or SOURCE in end or CANDIDATE in end:
        raise InputError(f"{path}: expected {SOURCE} once, then optionally {CANDIDATE} once")
    return Template(prompt, end)
