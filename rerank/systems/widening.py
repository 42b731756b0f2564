"""Lists with more candidates: translations of models beside those of the decoder."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING

from features.feature import Resources, Sentence
from features.progress import note, progress_bar
from moses_io.hypothesis import Hypothesis, parse_line
from moses_io.merge import DECODER, LOWEST, merge_sentence
from moses_io.nbest import SentenceList
from moses_io.streams import Lines, open_output
from moses_io.text import empty_file, encode, read_sources, tokens
from rerank import __version__
from rerank.lists.scoring import read_sentences
from rerank.lists.sources import WholeSources
from rerank.systems.request import CandidateRequest

if TYPE_CHECKING:
    from features.models.decoding.translator import Translation


class Widening:
    """Models that add the translations of their beams to lists.

    Candidates of one text are one. What the decoder knows of its own candidates alone is, for others, the lowest value
    of the sentence's list (`moses_io.merge`); features that say who has a candidate stand behind.

    Raises:
        InputError: a folder that is no forward model.
    """

    def __init__(self, requests: Sequence[CandidateRequest], resources: Resources) -> None:
        from features.models.decoding.search import Beam
        from features.models.decoding.translator import COPY, Replacement, Translator  # torch comes in here

        self._translators = {
            each.name: Translator(each.folders, Beam(each.size, each.size), Replacement(COPY), resources)
            for each in requests
        }
        for name, translator in self._translators.items():
            note(f"candidates of {name} = {translator.signature}|version:{__version__}")

    def widen(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return sentences with more candidates, those of the decoder first and as they were."""
        sources = [each.source for each in sentences]
        by_model = {name: list(each.translate(sources)) for name, each in self._translators.items()}
        widened = []
        for place, each in enumerate(sentences):
            lists = {DECODER: SentenceList(each.sentence, each.lines, each.path)}
            for name, translations in by_model.items():
                if own := listable(translations[place]):
                    lists[name] = _list(each, own)
            numbers = chain((line.number for line in each.lines), repeat(each.lines[0].number))
            lines = tuple(map(parse_line, merge_sentence(lists, LOWEST), numbers))
            hypotheses = tuple(tuple(tokens(line.text)) for line in lines)
            widened.append(replace(each, hypotheses=hypotheses, lines=lines))
        return widened


def widen_list(
    nbest: str, source: str, requests: Sequence[CandidateRequest], output: str, resources: Resources
) -> None:
    """Write a list with the candidates of models beside its own, some sentences after the other.

    Raises:
        InputError: as `Widening`; a list that cannot be read, has one of the features already, or an id beyond the
            source.
    """
    widening, sources = Widening(requests, resources), WholeSources(source)
    with open_output(output) as stream, progress_bar("translate", sources.total) as bar:
        for sentences in read_sentences(nbest, sources):
            stream.writelines(line.line for each in widening.widen(sentences) for line in each.lines)
            bar.advance(len(sentences), "")


def _list(sentence: Sentence, translations: Sequence["Translation"]) -> SentenceList:
    return SentenceList(sentence.sentence, tuple(_line(sentence, each) for each in translations), sentence.path)


def _line(sentence: Sentence, translation: "Translation") -> Hypothesis:
    text = f"{sentence.sentence} ||| {' '.join(translation.tokens)} ||| ||| {translation.value:.9g}\n"
    return parse_line(encode(text), sentence.lines[0].number)


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
