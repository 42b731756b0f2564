"""Lists with more candidates: translations of models beside those of the decoder."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING

from features.feature import Resources, Sentence
from features.progress import note, progress_bar
from moses_io.hypothesis import Hypothesis, parse_line
from moses_io.merge import DECODER, LOWEST, merge_sentence
from moses_io.nbest import SentenceList
from moses_io.streams import open_output
from moses_io.text import encode, tokens
from rerank import __version__
from rerank.lists.scoring import read_sentences
from rerank.lists.sources import WholeSources
from rerank.systems.request import CandidateRequest
from rerank.systems.translation import listable

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
        from features.models.decoding.replacement import COPY, Replacement  # torch comes in here
        from features.models.decoding.search import Beam
        from features.models.decoding.translator import Translator

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
