"""Text as pretrained models read it: Moses' tokens are turned back into natural text."""

from collections.abc import Sequence
from typing import Any

from features.models.pretrained.options import NATURAL, Options, filters_of
from moses_io.files.errors import InputError, reason_of
from moses_io.filters import FACTORS, Filters

JOINED = "debpe,desentencepiece,dejoiner,deescape"
"""Filters that undo the preprocessing of Moses systems. They do not change text without subwords or escapes."""


class Restored:
    """Function from the tokens of a sentence to the text that a model reads.

    Natural text has the first factor of each word, joined subwords, no escapes, a capital letter at the start of a
    sentence, and punctuation joined to words. With a truecaser, words also get their most frequent case.

    Args:
        options: options of the model.
        language: two-letter code of the language, as sacremoses needs it.
        truecaser: path of a truecasing model of Moses, or empty for none.

    Raises:
        InputError: the truecasing model cannot be read.
    """

    def __init__(self, options: Options, language: str, truecaser: str = "") -> None:
        natural = options.text == NATURAL
        self._factors = Filters("factors") if natural else None
        self._joined = Filters(JOINED if natural else filters_of(options))
        self._truecaser = _read_truecaser(truecaser) if truecaser else None
        self._end = Filters(f"detruecase,detokenize:{language}" if natural else "")

    def __call__(self, tokens: Sequence[str]) -> str:
        """Return the text, with U+FFFD for bytes that are not UTF-8."""
        text = " ".join(tokens).encode(errors="surrogateescape").decode(errors="replace")
        if self._factors and FACTORS.is_in(text):
            text = self._factors(text)
        text = self._joined(text)
        if self._truecaser and text:
            text = self._truecaser.truecase(text, return_str=True)
        return self._end(text)


def _read_truecaser(path: str) -> Any:
    import sacremoses

    try:
        return sacremoses.MosesTruecaser(load_from=path)
    except OSError as error:
        raise InputError(reason_of(error)) from None
    except Exception as error:  # the file is parsed without checks
        raise InputError(f"{path}: not a truecasing model ({error})") from None
