"""Translate a text: one line a sentence, or an n-best list as Moses writes them."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from features.progress import note, progress_bar
from moses_io.streams import Lines, open_output
from moses_io.text import empty_file, encode, read_sources, tokens
from rerank import __version__

if TYPE_CHECKING:
    from features.models.decoding.translator import Translation, Translator

BARS = "|||"


def write_translations(translator: "Translator", source: str | Lines, output: str, label: str = "") -> None:
    """Write the best translation of each line, or with a label all that were found as an n-best list.

    The list has their log-probability as its one feature, of that label, and as their total what they were compared
    by; the best comes first. The same text is there once, and none that a list cannot hold, with `|||` in it.

    Raises:
        InputError: the source cannot be read, or is empty.
    """
    sources = [tuple(tokens(line)) for line in read_sources(source)]
    if not sources:
        raise empty_file(source)
    note(f"{label or 'translation'} = {translator.signature}|version:{__version__}")
    started, total = time.monotonic(), 0
    with open_output(output) as stream, progress_bar("translate", len(sources)) as bar:

        def tell(count: int) -> None:
            nonlocal total
            total += count
            bar.advance(count, f"{total / (time.monotonic() - started):,.0f} sentences/s")

        for number, translations in enumerate(translator.translate(sources, tell)):
            best = " ".join(translations[0].tokens)
            lines = [
                f"{number} {BARS} {' '.join(each.tokens)} {BARS} {label}= {each.log_prob:.9g} {BARS} {each.value:.9g}\n"
                for each in listable(translations)
            ]
            stream.writelines(map(encode, lines if label else [f"{best}\n"]))


def listable(translations: "Sequence[Translation]") -> "list[Translation]":
    """Return those that a list can hold: without the bars that end its fields."""
    return [each for each in translations if not any(BARS in token for token in each.tokens)]
