"""A reranker in memory: features whose models are open, and weights."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from features.feature import Resources, Sentence
from features.feature_set import Column
from features.progress import log
from features.request import FeatureRequest, labelled_requests
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import Lines, is_live, name_of
from moses_io.files.text import decode, without_line_end
from moses_io.hypothesis import Hypothesis, parse_line, with_features
from moses_io.nbest import MosesOutput, SentenceList, read_moses_output
from moses_io.weights import check_weights
from rerank import __version__
from rerank.confidence.confidence import CONFIDENCE, read_estimator
from rerank.linear.selection import Estimate, Estimator, Holes, LinearModel, Ranking, rankings, read_holes
from rerank.linear.weights import load_weights
from rerank.lists.scoring import load_features, open_sources, score_list, written
from rerank.reranker.folder import WEIGHTS, read_candidates, read_features, read_manifest
from rerank.reranker.inputs import Text, check_types, features_of, input_of, optional_path_of, path_of
from rerank.systems.translations import CandidateMerger, indicators


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate of a sentence.

    Attributes:
        text: the translation.
        features: values by name, those of the list and those of the reranker; natural logs and counts.
        total: its score under the weights, higher is better.
    """

    text: str
    features: dict[str, tuple[float, ...]]
    total: float


@dataclass(frozen=True)
class ScoredSentence:
    """The candidates of a source sentence.

    Attributes:
        sentence: its id, from 0.
        candidates: best first; of equal ones the first in the list.
        estimate: how good the best one is expected to be, None where the reranker cannot tell.
    """

    sentence: int
    candidates: tuple[ScoredCandidate, ...]
    estimate: Estimate | None = None


class Reranker:
    """Reranks n-best lists with features and weights; it may be used for one list after the other.

    Lists and sources are paths, or lines.

    Attributes:
        features: `KIND[:ARG]` of each feature by its label.
        weights: of all features by name, those of the list included.
    """

    def __init__(
        self,
        features: Mapping[str, str],
        weights: str | Path | Mapping[str, Sequence[float]],
        *,
        device: str = "auto",
        precision: str = "fp32",
        cache: str | Path = "",
    ) -> None:
        """Open the features that the weights were tuned with.

        Args:
            features: `KIND[:ARG]` by label, such as `{"NMT": "neural:models/forward"}`.
            weights: a file such as `tune` writes, or values by name.
            device: `auto` (a GPU if there is one), `cpu` or `cuda`.
            precision: of the products of models, `fp32` or `bf16`.
            cache: folder of the values that models gave before; empty for none.

        Raises:
            InputError: an unknown kind, a model or a file that cannot be read.
        """
        requests = labelled_requests(features_of(features))
        self._open(requests, weights, Resources(device, precision, optional_path_of(cache, "cache")))

    def _open(
        self,
        requests: Sequence[FeatureRequest],
        weights: str | Path | Mapping[str, Sequence[float]],
        resources: Resources,
    ) -> None:
        self.features = {request.label: request.text for request in requests}
        self._origin = "the weights" if isinstance(weights, Mapping) else path_of(weights, "weights")
        self._features = load_features(requests, resources)
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
            folder: of the reranker.
            features: `KIND[:ARG]` by label of features that take the place of its own, such as `scores:FILE` with what
                another tool says of the list to come.
            allow_code: whether features that are code of users may run.
            device: see `Reranker`, as for the rest.
            precision: of the products of models.
            cache: folder of values.

        Raises:
            InputError: it is no such folder, a file in it is not what it was, or a feature runs code.
        """
        place = Path(path_of(folder, "folder"))
        check_types(bool, allow_code=allow_code)
        others = {} if features is None else features_of(features)
        manifest = read_manifest(place)
        requests = read_features(place, manifest, others, allow_code)
        candidates = read_candidates(place, manifest)
        resources = Resources(device, precision, optional_path_of(cache, "cache"))
        reranker = cls.__new__(cls)
        reranker._open(requests, place / WEIGHTS, resources)  # not by texts alone: requests have folders of code
        reranker._confidence = str(place / CONFIDENCE) if CONFIDENCE in manifest.files else ""
        if candidates:
            reranker._merger = CandidateMerger(candidates, Resources(device, precision))
            reranker._indicators = indicators([each.name for each in candidates])
        log.info(f"signature: {manifest.signature}|version:{__version__}")
        return reranker

    def rerank(self, nbest: Text, source: Text, *, on_missing: str | Path = "error") -> list[str]:
        """Return the best candidate of each sentence, one a source sentence.

        Args:
            nbest: a list as Moses wrote it, whose ids go up; a path, or its lines.
            source: a path, or source sentences; sentence k belongs to id k, from 0.
            on_missing: what stands for a sentence without candidates: `blank`, a file with a line for each, or `error`.

        Raises:
            InputError: a line that cannot be read, an id beyond the source, a sentence without candidates, or a list
                that lacks features which the weights are for.
        """
        holes = read_holes(None, None, _on_missing(on_missing))
        ranked = self.rankings(input_of(nbest, "<nbest>"), input_of(source, "<source>"), holes)
        return [decode(without_line_end(item)) if isinstance(item, bytes) else item.best.text for item in ranked]

    def score(self, nbest: Text, source: Text, *, moses_output: Text = "") -> Iterator[ScoredSentence]:
        """Yield the sentences of a list with all features and totals of their candidates; see `rerank`.

        A sentence without candidates is left out. Errors come where the list is read, after the sentences before. A
        reranker that `load` opened also estimates how good its choice is; where that was fitted by another version, a
        warning says so.

        Args:
            nbest: a list as Moses wrote it, whose ids go up; a path, or its lines.
            source: a path, or source sentences; sentence k belongs to id k, from 0.
            moses_output: Moses' own output, one line a source sentence, with which estimates compare; a path, or its
                lines; default: the candidates with the highest totals.

        Raises:
            InputError: as `rerank`; or Moses' output has another number of lines than the source.
        """
        given = not isinstance(moses_output, str) or moses_output != ""
        printed = read_moses_output(input_of(moses_output, "<moses_output>")) if given else None
        estimator, holes = self._estimator(given), Holes(blank=True)
        listed, text = input_of(nbest, "<nbest>"), input_of(source, "<source>")
        for item in self.rankings(listed, text, holes, moses_output=printed):
            if not isinstance(item, bytes):
                yield _scored(item, estimator(item) if estimator else None)

    def _estimator(self, moses_output: bool) -> Estimator | None:
        if not self._confidence:
            return None
        try:
            return read_estimator(self._confidence, self._origin, moses_output).estimate
        except InputError as error:
            log.warning(f"no estimates: {error}")
            return None

    def rankings(
        self,
        nbest: str | Lines,
        source: str | Lines,
        holes: Holes,
        batch: int = 0,
        moses_output: MosesOutput | None = None,
    ) -> Iterator[Ranking | bytes]:
        """Yield a ranking for each source sentence, or the line of `holes`; `batch` sentences are scored together.

        Raises:
            InputError: as `rerank`; or the decoder's output has another number of lines than the source, which is seen
                at the end.
        """
        model = LinearModel(self.weights, self._origin)
        with open_sources(source, nbest) as sources:
            check = partial(model.check, to_come=[*self.features, *self._indicators])
            live = is_live(nbest)
            prepare = partial(self._prepared, live)
            lists = _lists(score_list(nbest, sources, self._features.at_start(), batch, check, prepare))
            if moses_output:
                lists = moses_output.add_to(lists)
            yield from rankings(lists, model, replace(holes, sentences=sources.count, live=live))
            if moses_output:
                moses_output.check(sources.count(), name_of(source))

    def _prepared(self, live: bool, sentences: list[Sentence]) -> list[Sentence]:
        """Return sentences with all candidates that are to be scored.

        Raises:
            InputError: a list from a pipe ends within a line: who wrote it was stopped.
        """
        for sentence in sentences:
            if live and not sentence.lines[-1].line.endswith(b"\n"):
                raise InputError(f"{sentence.place(sentence.lines[-1])}: the list ends within this line")
        return self._merger.merge(sentences) if self._merger else sentences


def _on_missing(on_missing: object) -> str:
    """Return what stands for a sentence without candidates: `error`, `blank`, or a path, also one of these names."""
    if not isinstance(on_missing, str | Path):
        raise InputError(f"on_missing: expected 'error', 'blank' or a path, found {shown(on_missing)}")
    path = path_of(on_missing, "on_missing")
    return os.path.join(".", path) if isinstance(on_missing, Path) else path


def _lists(scored: Iterable[tuple[list[Sentence], list[Column]]]) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence with all features, as a reader of the scored list would."""
    # By way of text: values are rounded as `score` writes them, so that choices are those of its list, and the lines
    # are what `apply --nbest` writes.
    for sentences, columns in scored:
        rows = written(columns) if columns else itertools.repeat([])
        for sentence in sentences:
            hypotheses = tuple(parse_line(with_features(line, next(rows)), line.number) for line in sentence.lines)
            yield SentenceList(sentence.sentence, hypotheses, sentence.path)


def _scored(ranking: Ranking, estimate: Estimate | None) -> ScoredSentence:
    hypotheses = ranking.candidates.hypotheses
    candidates = (
        ScoredCandidate(hypotheses[place].text, _values(hypotheses[place]), float(ranking.scores[place]))
        for place in ranking.order
    )
    return ScoredSentence(ranking.candidates.sentence, tuple(candidates), estimate)


def _values(hypothesis: Hypothesis) -> dict[str, tuple[float, ...]]:
    return dict(hypothesis.dense) | {name: (value,) for name, value in hypothesis.sparse.items()}
