"""The class `Reranker`, with open models and weights, and the results that it returns."""

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from features.feature import Resources, Sentence
from features.feature_set import Column
from features.progress import log
from features.request import FeatureRequest, labelled_requests
from moses_io.files.errors import InputError, counted, shown
from moses_io.files.streams import Lines, is_live, name_of
from moses_io.files.text import decode, without_line_end
from moses_io.hypothesis import Hypothesis, parse_line, with_features
from moses_io.input_filters import InputFilters
from moses_io.nbest import MosesOutput, SentenceList, read_moses_output
from moses_io.weights import WeightFile, check_weights
from rerank import __version__
from rerank.confidence.confidence import CONFIDENCE, read_estimator
from rerank.inputs import Text, check_types, features_of, input_of, optional_path_of, path_of
from rerank.linear.missing import Replacements, complete, read_replacements
from rerank.linear.ranking import Estimate, Estimator, LinearModel, Ranking, rankings
from rerank.linear.shortlist import Shortlist
from rerank.linear.weights import load_weights
from rerank.lists.scoring import load_features, open_sources, score_list, score_sentences, written
from rerank.reranker.folder import SHORTLIST_WEIGHTS, WEIGHTS, read_candidates, read_features, read_manifest
from rerank.systems.translations import CandidateMerger, indicators


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate translation of a sentence.

    Attributes:
        text: the translation.
        features: feature values by name, from the list and from the reranker: natural logarithms and counts.
        total: score under the weights, where higher is better.
    """

    text: str
    features: dict[str, tuple[float, ...]]
    total: float


@dataclass(frozen=True)
class ScoredSentence:
    """The candidates of a source sentence.

    Attributes:
        sentence: id of the sentence, from 0.
        candidates: candidates, best first. Ties are in the order of the list.
        estimate: sentence-level confidence of the best candidate, or None if the reranker has no confidence estimation.
    """

    sentence: int
    candidates: tuple[ScoredCandidate, ...]
    estimate: Estimate | None = None


class Reranker:
    """A reranker of n-best lists with features and weights. It can be used for several lists, also by several threads.

    Lists and sources are paths, or iterables of lines.

    Attributes:
        features: `KIND[:ARG]` of each feature by label.
        weights: weights of all features by name, including the features of the list.
    """

    def __init__(
        self,
        features: Mapping[str, str],
        weights: str | Path | Mapping[str, Sequence[float]],
        *,
        input_filter: str = "",
        device: str = "auto",
        precision: str = "fp32",
        cache: str | Path = "",
    ) -> None:
        """Open the features that the weights were tuned with.

        Args:
            features: `KIND[:ARG]` by label, such as `{"NMT": "neural:models/forward"}`.
            weights: a weight file, such as the output of `tune`, or weights by name.
            input_filter: filters for sources and candidates, such as `debpe`, or empty for none.
            device: `auto` (a GPU if there is one), `cpu` or `cuda`.
            precision: precision of matrix products in models, `fp32` or `bf16`.
            cache: folder of cached model scores, or empty for none.

        Raises:
            InputError: an unknown kind or filter, or a model or a file that cannot be read.
        """
        requests = labelled_requests(features_of(features))
        resources = Resources(device, precision, optional_path_of(cache, "cache"))
        self._open(requests, weights, resources, (), input_filter)

    def _open(
        self,
        requests: Sequence[FeatureRequest],
        weights: str | Path | Mapping[str, Sequence[float]],
        resources: Resources,
        shortlist_features: Collection[str],
        input_filter: str,
    ) -> None:
        """Open features and weights. The features `shortlist_features` are computed for the shortlist only."""
        self._filters = InputFilters(input_filter)
        self.features = {request.label: request.text for request in requests}
        self._origin = "the weights" if isinstance(weights, Mapping) else path_of(weights, "weights")
        self._features = load_features([each for each in requests if each.label not in shortlist_features], resources)
        self._shortlist_features = load_features(
            [each for each in requests if each.label in shortlist_features], resources
        )
        self._shortlist: Shortlist | None = None
        self._confidence, self._indicators = "", list[str]()
        self._merger: CandidateMerger | None = None
        self.weights = check_weights(weights) if isinstance(weights, Mapping) else load_weights(self._origin)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        features: Mapping[str, str] | None = None,
        allow_code: bool = False,
        device: str = "auto",
        precision: str = "fp32",
        cache: str | Path = "",
    ) -> "Reranker":
        """Open the folder of a reranker, which `moses-rerank run` makes.

        Args:
            folder: the folder of the reranker.
            features: `KIND[:ARG]` by label. These features replace features of the reranker, such as `scores:FILE` with
                scores that another tool computed for the new list.
            allow_code: whether features may run code of users.
            device: `auto` (a GPU if there is one), `cpu` or `cuda`.
            precision: precision of matrix products in models, `fp32` or `bf16`.
            cache: folder of cached model scores, or empty for none.

        Raises:
            InputError: the folder is no reranker, a file in it has changed, or a feature runs code without permission.
        """
        path = Path(path_of(folder, "folder"))
        check_types(bool, allow_code=allow_code)
        others = {} if features is None else features_of(features)
        manifest = read_manifest(path)
        requests = read_features(path, manifest, others, allow_code)
        candidates = read_candidates(path, manifest)
        resources = Resources(device, precision, optional_path_of(cache, "cache"))
        reranker = cls.__new__(cls)
        shortlist = manifest.shortlist
        shortlist_features = shortlist.features if shortlist else ()
        # Not by `__init__`: these requests have a folder of code.
        reranker._open(requests, path / WEIGHTS, resources, shortlist_features, manifest.input_filter)
        if shortlist:
            reranker._shortlist = Shortlist(str(path / SHORTLIST_WEIGHTS), shortlist.size)
        reranker._confidence = str(path / CONFIDENCE) if CONFIDENCE in manifest.files else ""
        if candidates:
            reranker._merger = CandidateMerger(candidates, Resources(device, precision))
            reranker._indicators = indicators([each.name for each in candidates])
        log.info(f"signature: {manifest.signature}|version:{__version__}")
        return reranker

    def rerank(self, nbest: Text, source: Text, *, on_missing: str | Path = "error") -> list[str]:
        """Return the best candidate of each source sentence.

        Args:
            nbest: an n-best list as Moses wrote it, with ascending ids. It is a path, or its lines.
            source: a path, or source sentences. Sentence k belongs to id k, from 0.
            on_missing: line for a sentence without candidates: `blank` for an empty line, a file with one line for each
                source sentence, or `error` to raise `InputError`.

        Returns:
            One translation for each source sentence.

        Raises:
            InputError: a line that cannot be read, an id beyond the source, a sentence without candidates, or a list
                without a feature that has a weight.
        """
        replacements = read_replacements(None, None, _on_missing(on_missing))
        ranked = self.rankings(input_of(nbest, "<nbest>"), input_of(source, "<source>"), replacements)
        return [decode(without_line_end(item)) if isinstance(item, bytes) else item.best.text for item in ranked]

    def score(self, nbest: Text, source: Text, *, moses_output: Text = "") -> Iterator[ScoredSentence]:
        """Yield the sentences of a list with all features and totals of their candidates.

        Sentences without candidates are left out. An error is raised where the list is read, after the sentences before
        it. A reranker from `load` also estimates the confidence of its choices. If its confidence estimation cannot be
        used, for example because its format is too old, a warning is logged and there are no estimates.

        Args:
            nbest: an n-best list as Moses wrote it, with ascending ids. It is a path, or its lines.
            source: a path, or source sentences. Sentence k belongs to id k, from 0.
            moses_output: Moses' own output, one line for each source sentence, with which the confidence estimation
                compares. It is a path, or its lines (default: the candidates with the highest totals).

        Raises:
            InputError: as `rerank`, or Moses' output and the source differ in length.
        """
        given = not isinstance(moses_output, str) or moses_output != ""
        printed = read_moses_output(input_of(moses_output, "<moses_output>")) if given else None
        replacements, estimator = Replacements(blank=True), None
        try:
            estimator = self.estimator(given)
        except InputError as error:
            log.warning(f"no estimates: {error}")
        listed, text = input_of(nbest, "<nbest>"), input_of(source, "<source>")
        for item in self.rankings(listed, text, replacements, moses_output=printed):
            if not isinstance(item, bytes):
                yield _scored(item, estimator(item) if estimator else None)

    def estimator(self, moses_output: bool) -> Estimator | None:
        """Return the function that estimates the confidence of a choice, or None if the reranker has none.

        A warning is logged if it was fitted with Moses' output and none is given.

        Args:
            moses_output: whether Moses' own output is given, with which the estimation compares.

        Raises:
            InputError: the confidence estimation has an unknown format, is damaged, or was fitted for other weights.
        """
        if not self._confidence:
            return None
        return read_estimator(self._confidence, self.weights, self._origin, moses_output).estimate

    def rankings(
        self,
        nbest: str | Lines,
        source: str | Lines,
        replacements: Replacements,
        batch: int = 0,
        moses_output: MosesOutput | None = None,
    ) -> Iterator[Ranking | bytes]:
        """Yield a ranking for each source sentence, or the line of `replacements` for a sentence without candidates.

        Args:
            nbest: the list.
            source: its source.
            replacements: lines for sentences without candidates.
            batch: maximum sentences that are scored together, or 0 for as many as have about 10,000 candidates.
            moses_output: Moses' own output, with which the confidence estimation compares.

        Raises:
            InputError: as `rerank`, or, after the last sentence, Moses' output or the file of replacement lines differs
                from the source in length.
        """
        model = LinearModel(WeightFile(self.weights), self._origin)
        with open_sources(source, nbest) as sources:
            check = partial(model.check, pending=[*self.features, *self._indicators])
            live = is_live(nbest)
            filtered_output = self._filters.filter_output(moses_output) if moses_output else None
            prepare = partial(self._prepared, live)
            scored = score_list(nbest, sources, self._features.restarted(), batch, check, prepare, self._filters)
            if self._shortlist:
                shorter = (_shortened(*group, self._shortlist, filtered_output) for group in scored)
                scored = score_sentences(shorter, self._shortlist_features.restarted(), sources.total)
            lists = _lists(scored)
            if filtered_output:
                lists = filtered_output.add_to(lists)
            filtered = replacements.lines and [self._filters(line) for line in replacements.lines]
            completed = complete(lists, replace(replacements, sentences=sources.count, live=live, lines=filtered))
            yield from rankings(completed, model)
            if replacements.lines is not None and len(replacements.lines) != sources.count():
                fault = f"the file of --on-missing has {counted(len(replacements.lines), 'line')}"
                raise InputError(f"{fault}, {name_of(source)} has {sources.count()}")
            if moses_output:
                moses_output.check(sources.count(), name_of(source))

    def _prepared(self, live: bool, sentences: list[Sentence]) -> list[Sentence]:
        """Return sentences with all candidates that are to be scored, including candidates of models.

        Raises:
            InputError: a list from a pipe ends within a line, because the writing program was stopped.
        """
        for sentence in sentences:
            if live and not sentence.lines[-1].line.endswith(b"\n"):
                raise InputError(f"{sentence.place(sentence.lines[-1])}: the list ends within this line")
        return self._merger.merge(sentences) if self._merger else sentences


def _on_missing(on_missing: object) -> str:
    """Return `error`, `blank` or a path. A `Path` with one of these two names is a path."""
    if not isinstance(on_missing, str | Path):
        raise InputError(f"on_missing: expected 'error', 'blank' or a path, found {shown(on_missing)}")
    path = path_of(on_missing, "on_missing")
    return os.path.join(".", path) if isinstance(on_missing, Path) else path


def _lists(scored: Iterable[tuple[list[Sentence], list[Column]]]) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence with all features, as if they were read from the scored list."""
    for sentences, columns in scored:
        for sentence, hypotheses in zip(sentences, _with_values(sentences, columns), strict=True):
            yield SentenceList(sentence.sentence, hypotheses, sentence.path)


def _with_values(sentences: Sequence[Sentence], columns: Sequence[Column]) -> Iterator[tuple[Hypothesis, ...]]:
    """Yield the lines of each sentence with the values of the features appended."""
    # Values go through text, which rounds them as `score` does. So `apply` makes the same choices as `rerank` on the
    # scored list, and the lines are ready for `apply --nbest`.
    rows = written(columns) if columns else itertools.repeat([])
    for sentence in sentences:
        yield tuple(parse_line(with_features(line, next(rows)), line.number) for line in sentence.lines)


def _shortened(
    sentences: list[Sentence], columns: list[Column], shortlist: Shortlist, moses_output: MosesOutput | None
) -> list[Sentence]:
    """Return the sentences with the candidates of the shortlist and the features that selected them."""
    lists = _lists([(sentences, columns)])
    shorter = []
    for sentence, listed in zip(sentences, moses_output.add_to(lists) if moses_output else lists, strict=True):
        indices = shortlist.indices(listed)
        hypotheses = tuple(sentence.hypotheses[index] for index in indices)
        lines = tuple(listed.hypotheses[index] for index in indices)
        shorter.append(replace(sentence, hypotheses=hypotheses, lines=lines))
    return shorter


def _scored(ranking: Ranking, estimate: Estimate | None) -> ScoredSentence:
    hypotheses = ranking.candidates.hypotheses
    candidates = (
        ScoredCandidate(hypotheses[index].text, _values(hypotheses[index]), float(ranking.scores[index]))
        for index in ranking.order
    )
    return ScoredSentence(ranking.candidates.sentence, tuple(candidates), estimate)


def _values(hypothesis: Hypothesis) -> dict[str, tuple[float, ...]]:
    return dict(hypothesis.dense) | {name: (value,) for name, value in hypothesis.sparse.items()}
