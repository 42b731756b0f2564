"""Translations of models: as text, as n-best lists, and as candidates that are added to the decoder's list."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from features.feature import Resources, Sentence
from features.kinds.pretrained import require_transformers
from features.progress import log, progress_bar
from features.request import is_pretrained, parse_requests, parts_of, row_of, with_parts
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import Lines, open_output
from moses_io.files.text import empty_file, encode, read_sources, tokens, write_text
from moses_io.hypothesis import Hypothesis, parse_line
from moses_io.merge import DECODER, INDICATOR, LIST_NAME, merge_sentence
from moses_io.nbest import SentenceList
from rerank import __version__
from rerank.lists.scoring import WholeSources, read_sentences

if TYPE_CHECKING:
    from features.models.decoding.translator import Translation

MAX_CANDIDATES = 10_000
"""Maximum number of candidates of a model per sentence."""

MIN_LENGTH = 0.8
"""Minimum words of a candidate of a model, as a fraction of the words of the decoder's shortest candidate.

Shorter translations usually omit a part of the source, which no feature of the decoder or the model penalizes enough.
"""

_NOT_IN_NAMES = re.compile("[^0-9A-Za-z]")


class Translates(Protocol):
    """Interface of models that translate.

    Attributes:
        signature: signature of the models and of the search.
    """

    signature: str

    def translate(
        self, sources: Sequence[tuple[str, ...]], done: Callable[[int], object] = ...
    ) -> Iterator["list[Translation]"]:
        """Yield the translations of each source, at least one, best first.

        `done` is called with the number of sources that are ready.
        """


@dataclass(frozen=True)
class CandidateRequest:
    """A request for candidates of forward models that translate together.

    Attributes:
        name: name of the list of these candidates, see `list_name`.
        folders: folders of the models, which share the target vocabulary and the word order, or a single pretrained
            model `hf:DIR[…]`.
        size: beam size. All translations of the beam become candidates.
    """

    name: str
    folders: tuple[str, ...]
    size: int

    @property
    def text(self) -> str:
        """Size and folders, as a reranker stores them."""
        return f"{self.size}:{','.join(self.folders)}"

    @property
    def paths(self) -> list[str]:
        """Folders and files that determine the translations."""
        return [path for model in self.folders for path in parts_of(model)]

    @property
    def identity(self) -> list[str | int]:
        """Values that distinguish the request from others, apart from the models themselves."""
        settings = [parse_requests([model])[0].values for model in self.folders if is_pretrained(model)]
        return [self.name, self.size, len(self.folders), *settings]

    def moved(self, move: Callable[[str], str]) -> "CandidateRequest":
        """Return the request with other paths."""
        folders = (with_parts(model, [move(path) for path in parts_of(model)]) for model in self.folders)
        return replace(self, folders=tuple(folders))


def list_name(model: str) -> str:
    """Return the name of the list of a model: the ASCII letters and digits of the model's name."""
    return _NOT_IN_NAMES.sub("", model)


def indicators(names: Sequence[str]) -> list[str]:
    """Return the names of the indicator features of the decoder's list and of the named lists, empty without names."""
    return [f"{INDICATOR}{name}" for name in (DECODER, *names)] if names else []


def check_candidates(size: Any, model: str) -> None:
    """Raise `InputError` if a model cannot provide this number of candidates.

    Raises:
        InputError: the size is not a whole number from 1 to `MAX_CANDIDATES`, or the name of the model's list does not
            begin with a letter.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_CANDIDATES:
        raise InputError(f"candidates: expected a whole number from 1 to {MAX_CANDIDATES}, found {shown(size)}")
    if not LIST_NAME.fullmatch(list_name(model)):
        raise InputError("candidates: expected a name that begins with a letter")


def check_forward(backward: bool) -> None:
    """Raise `InputError` if a model is a backward model, which has no candidates."""
    if backward:
        raise InputError("candidates: a backward model predicts the source and has no candidates")


def check_names(models: Mapping[str, str], features: Mapping[str, str]) -> None:
    """Check the names of the models' lists, and whether the features are available for their candidates.

    Args:
        models: names of the models that add candidates, by the keys that messages show.
        features: features `KIND[:ARG]`, by label.

    Raises:
        InputError: two lists have equal names (the decoder's is `Moses`), an indicator has the label of a feature, or a
            feature needs data that only the decoder's candidates have, such as alignment, total, or the order of their
            scores.
    """
    names: list[str] = []
    for key, name in zip(models, map(list_name, models.values()), strict=True):
        if name in (DECODER, *names):
            other = "the decoder's list" if name == DECODER else "another list"
            raise InputError(f"{key}: {other} is also called {name}. Choose another name")
        names.append(name)
    for label in indicators(names):
        if label in features:
            raise InputError(
                f"features.{label}: reserved for the feature that marks the origin of candidates. Choose another label"
            )
    for label, text in features.items():
        row = row_of(text)
        if names and row and row.of_decoder:
            kind = text.partition(":")[0]
            raise InputError(f"features.{label}: {kind} is for the decoder's own candidates. Remove `candidates`")


class CandidateMerger:
    """Models whose translations are added to lists.

    Translations that are much shorter than all candidates of the decoder are left out (`MIN_LENGTH`). A candidate of
    several lists becomes one. A feature that only the decoder's candidates have gets, for the other
    candidates, the lowest value in the list of the sentence (`moses_io.merge`). Indicator features of the lists that
    contain a candidate are appended.

    Raises:
        InputError: a folder is not a forward model.
    """

    def __init__(self, requests: Sequence[CandidateRequest], resources: Resources) -> None:
        self._translators = {each.name: _translator(each, resources) for each in requests}
        for name, translator in self._translators.items():
            log.info(f"candidates of {name} = {translator.signature}|version:{__version__}")

    def translate(self, sentences: Sequence[Sentence]) -> "dict[str, list[list[Translation]]]":
        """Return the translations of each sentence, best first, by the name of the list."""
        sources = [each.source for each in sentences]
        return {name: list(each.translate(sources)) for name, each in self._translators.items()}

    def merge(
        self, sentences: Sequence[Sentence], by_model: "Mapping[str, Sequence[Sequence[Translation]]] | None" = None
    ) -> list[Sentence]:
        """Return sentences with more candidates.

        The decoder's candidates come first. They keep their lines, with the indicators appended.

        Args:
            sentences: the sentences.
            by_model: their translations, as `translate` returns them (default: they are translated).
        """
        by_model = self.translate(sentences) if by_model is None else by_model
        merged = []
        for index, each in enumerate(sentences):
            lists = {DECODER: SentenceList(each.sentence, each.lines, each.path)}
            shortest = MIN_LENGTH * min(map(len, each.hypotheses))
            for name, translations in by_model.items():
                usable = (one for one in listable(translations[index]) if len(one.tokens) >= shortest)
                candidates = tuple(_candidate(each, one) for one in usable)
                lists[name] = SentenceList(each.sentence, candidates, each.path)
            # Added candidates have no line in the file. Messages name the first line of the sentence.
            numbers = chain((line.number for line in each.lines), repeat(each.lines[0].number))
            lines = tuple(map(parse_line, merge_sentence(lists), numbers))
            hypotheses = tuple(tuple(tokens(line.text)) for line in lines)
            merged.append(replace(each, hypotheses=hypotheses, lines=lines))
        return merged


def _translator(request: CandidateRequest, resources: Resources) -> Translates:
    """Return the models of a request."""
    from features.models.decoding.search import Beam  # imports torch
    from features.models.decoding.translator import COPY, Replacement, Translator

    beam = Beam(request.size, request.size)
    if not is_pretrained(request.folders[0]):
        return Translator(request.folders, beam, Replacement(COPY), resources)
    require_transformers()
    from features.models.pretrained.translator import PretrainedTranslator

    return PretrainedTranslator(parse_requests(request.folders)[0].argument, beam, resources)


def _candidate(sentence: Sentence, translation: "Translation") -> Hypothesis:
    # A hypothesis keeps the bytes of its line for output. So we build the line and parse it.
    text = f"{sentence.sentence} ||| {' '.join(translation.tokens)} ||| ||| {translation.value:.9g}\n"
    return parse_line(encode(text), sentence.lines[0].number)


def merge_translations(
    nbest: str,
    source: str,
    requests: Sequence[CandidateRequest],
    output: str,
    resources: Resources,
    text_paths: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a list with the candidates of models added, a batch of sentences at a time.

    Args:
        nbest: path of the list.
        source: path of its source.
        requests: the models.
        output: path of the list to write.
        resources: device and precision.
        text_paths: paths of texts to write, by the name of a request: the best translation of each sentence, an empty
            line for a sentence that is not in the list.

    Raises:
        InputError: see `CandidateMerger`. The list cannot be read, already has one of the features, or has an id beyond
            the source.
    """
    merger = CandidateMerger(requests, resources)
    sources = WholeSources(source)
    best = {name: [""] * sources.total for name in text_paths}
    with open_output(output) as stream, progress_bar("translate", sources.total, whole=True) as bar:
        for sentences in read_sentences(nbest, sources, "the list with more candidates"):
            by_model = merger.translate(sentences)
            for name, lines in best.items():
                for each, translations in zip(sentences, by_model[name], strict=True):
                    lines[each.sentence] = " ".join(translations[0].tokens)
            stream.writelines(line.line for each in merger.merge(sentences, by_model) for line in each.lines)
            bar.advance(len(sentences), "")
    for name, path in text_paths.items():
        write_text(path, "".join(f"{line}\n" for line in best[name]))


def write_translations(translator: Translates, source: str | Lines, output: str, label: str = "") -> None:
    """Write the best translation of each line or, with a label, an n-best list of all translations found.

    The list has the log-probability as its only feature, named by the label, and the search score as total. The best
    translation comes first. Each text occurs once. Translations that contain `|||` are left out of the list.

    Raises:
        InputError: the source cannot be read, or is empty.
    """
    sources = [tuple(tokens(line)) for line in read_sources(source)]
    if not sources:
        raise empty_file(source)
    log.info(f"{label or 'translation'} = {translator.signature}|version:{__version__}")
    started, total = time.monotonic(), 0
    with open_output(output) as stream, progress_bar("translate", len(sources)) as bar:

        def advance(count: int) -> None:
            nonlocal total
            total += count
            bar.advance(count, f"{total / (time.monotonic() - started):,.0f} sentences/s")

        for number, translations in enumerate(translator.translate(sources, advance)):
            if not label:
                stream.write(encode(f"{' '.join(translations[0].tokens)}\n"))
                continue
            for each in listable(translations):
                fields = f"{' '.join(each.tokens)} ||| {label}= {each.log_prob:.9g} ||| {each.value:.9g}"
                stream.write(encode(f"{number} ||| {fields}\n"))


def listable(translations: "Sequence[Translation]") -> "list[Translation]":
    """Return the translations without `|||`, which separates the fields of a list."""
    return [each for each in translations if not any("|||" in token for token in each.tokens)]
