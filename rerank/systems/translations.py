"""Translations of models: files of them, and lists that have them beside the candidates of the decoder."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from features.feature import Resources, Sentence
from features.progress import log, progress_bar
from features.request import row_of
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import Lines, open_output
from moses_io.files.text import empty_file, encode, read_sources, tokens
from moses_io.hypothesis import Hypothesis, parse_line
from moses_io.merge import DECODER, INDICATOR, LIST_NAME, LOWEST, merge_sentence
from moses_io.nbest import SentenceList
from rerank import __version__
from rerank.lists.scoring import WholeSources, read_sentences

if TYPE_CHECKING:
    from features.models.decoding.translator import Translation, Translator

MOST = 10_000
"""Candidates of a model for a sentence."""

_NOT_IN_NAMES = re.compile("[^0-9A-Za-z]")


@dataclass(frozen=True)
class CandidateRequest:
    """Candidates of forward models that translate together, for each sentence.

    Attributes:
        name: of the list of these, see `list_name`.
        folders: of the models; they have one target vocabulary and order of words.
        size: of the beam, all of whose translations become candidates.
    """

    name: str
    folders: tuple[str, ...]
    size: int

    @property
    def text(self) -> str:
        """Size and folders, as a reranker keeps them."""
        return f"{self.size}:{','.join(self.folders)}"

    @property
    def identity(self) -> list[str | int]:
        """What tells the request from others, but for the models themselves."""
        return [self.name, self.size, len(self.folders)]


def list_name(model: str) -> str:
    """Return the letters and digits of a model's name, which name its list."""
    return _NOT_IN_NAMES.sub("", model)


def indicators(names: Sequence[str]) -> list[str]:
    """Return the features that say who has a candidate: the decoder's list, and those of these names, if any."""
    return [f"{INDICATOR}{name}" for name in (DECODER, *names)] if names else []


def check_candidates(size: Any, model: str, backward: bool) -> None:
    """Refuse a number of candidates that is none, or a model that can have none.

    Raises:
        InputError: with the reason.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise InputError(f"candidates: expected a whole number from 1 to {MOST}, found {shown(size)}")
    check_forward(backward)
    if not LIST_NAME.fullmatch(list_name(model)):
        raise InputError("candidates: expected a name that begins with a letter")


def check_forward(backward: bool) -> None:
    """Refuse a model that can have no candidates; an `InputError` says why."""
    if backward:
        raise InputError("candidates: a backward model says the source, and has none")


def check_names(models: Sequence[str], features: Mapping[str, str]) -> None:
    """Refuse models whose lists have one name, an indicator with the label of a feature, and features of the decoder.

    These, `KIND[:ARG]` by their labels, need what only the decoder's own lines have: its alignment, its total, or
    scores in their order.

    Raises:
        InputError: with the name.
    """
    names = [list_name(model) for model in models]
    for place, name in enumerate(names):
        if name in (DECODER, *names[:place]):
            raise InputError(f"models.{models[place]}: another list is called {name}, too")
    for label in indicators(names):
        if label in features:
            raise InputError(f"features.{label}: that is what says who has a candidate; name another label")
    for label, text in features.items():
        row = row_of(text)
        if names and row and row.of_decoder:
            kind = text.partition(":")[0]
            raise InputError(f"features.{label}: {kind} is for the decoder's own candidates; name no `candidates`")


class CandidateMerger:
    """Models whose translations are merged into lists.

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
            log.info(f"candidates of {name} = {translator.signature}|version:{__version__}")

    def merge(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return sentences with more candidates, those of the decoder first and as they were."""
        sources = [each.source for each in sentences]
        by_model = {name: list(each.translate(sources)) for name, each in self._translators.items()}
        merged = []
        for place, each in enumerate(sentences):
            lists = {DECODER: SentenceList(each.sentence, each.lines, each.path)}
            for name, translations in by_model.items():
                if own := tuple(_candidate(each, one) for one in listable(translations[place])):
                    lists[name] = SentenceList(each.sentence, own, each.path)
            numbers = chain((line.number for line in each.lines), repeat(each.lines[0].number))
            lines = tuple(map(parse_line, merge_sentence(lists, LOWEST), numbers))
            hypotheses = tuple(tuple(tokens(line.text)) for line in lines)
            merged.append(replace(each, hypotheses=hypotheses, lines=lines))
        return merged


def _candidate(sentence: Sentence, translation: "Translation") -> Hypothesis:
    # A hypothesis holds the bytes of its line, which are written as they are: so the line is made, and read.
    text = f"{sentence.sentence} ||| {' '.join(translation.tokens)} ||| ||| {translation.value:.9g}\n"
    return parse_line(encode(text), sentence.lines[0].number)


def merge_translations(
    nbest: str, source: str, requests: Sequence[CandidateRequest], output: str, resources: Resources
) -> None:
    """Write a list with the candidates of models beside its own, some sentences after the other.

    Raises:
        InputError: as `CandidateMerger`; a list that cannot be read, has one of the features already, or an id beyond
            the source.
    """
    merger = CandidateMerger(requests, resources)
    sources = WholeSources(source)
    with open_output(output) as stream, progress_bar("translate", sources.total) as bar:
        for sentences in read_sentences(nbest, sources, "the list with more candidates"):
            stream.writelines(line.line for each in merger.merge(sentences) for line in each.lines)
            bar.advance(len(sentences), "")


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
    log.info(f"{label or 'translation'} = {translator.signature}|version:{__version__}")
    started, total = time.monotonic(), 0
    with open_output(output) as stream, progress_bar("translate", len(sources)) as bar:

        def tell(count: int) -> None:
            nonlocal total
            total += count
            bar.advance(count, f"{total / (time.monotonic() - started):,.0f} sentences/s")

        for number, translations in enumerate(translator.translate(sources, tell)):
            best = " ".join(translations[0].tokens)
            lines = [
                f"{number} ||| {' '.join(each.tokens)} ||| {label}= {each.log_prob:.9g} ||| {each.value:.9g}\n"
                for each in listable(translations)
            ]
            stream.writelines(map(encode, lines if label else [f"{best}\n"]))


def listable(translations: "Sequence[Translation]") -> "list[Translation]":
    """Return those that a list can hold: without the bars that end its fields."""
    return [each for each in translations if not any("|||" in token for token in each.tokens)]
