"""A reranker applied to a list: features, weights, choice, each batch of sentences as soon as it is complete."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from features.feature import Resources
from features.feature_set import FeatureSet
from features.progress import note
from moses_io.errors import InputError
from moses_io.hypothesis import parse_line, with_features
from moses_io.nbest import SentenceList
from moses_io.streams import STANDARD
from moses_io.weights import read_weights
from rerank import __version__
from rerank.reranker.folder import WEIGHTS, read_features, read_manifest
from rerank.scoring import load_features, score_list, written
from rerank.selection import LinearModel, Outputs, read_holes, write_choices
from rerank.sources import Sources, growing_sources, is_live


@dataclass(frozen=True)
class Application:
    """How a reranker is applied.

    Attributes:
        features: `KIND[:ARG]` by label of features that take the place of its own.
        allow_code: whether features that run code of users may do so.
        batch: sentences that are scored together, at most; 0 for as many as `score` takes.
        on_missing: what stands for a sentence without candidates: `error`, `blank`, or a file with a line for each.
    """

    features: Mapping[str, str] = field(default_factory=dict)
    allow_code: bool = False
    batch: int = 0
    on_missing: str = "error"


def apply(folder: str, nbest: str, source: str, outputs: Outputs, resources: Resources, how: Application) -> None:
    """Write the best candidate of each sentence of a list, whose ids go up; one line a source sentence, always.

    Raises:
        InputError: the folder is no reranker, or the list lacks features that it has weights for.
    """
    if nbest == source == STANDARD:
        raise InputError("list and source cannot both come from stdin")
    place = Path(folder)
    manifest = read_manifest(place)
    features = load_features(read_features(place, manifest, how.features, how.allow_code), resources)
    weights = str(place / WEIGHTS)
    model, holes = LinearModel(read_weights(weights), weights), read_holes(None, None, how.on_missing)
    note(f"signature: {manifest.signature}|version:{__version__}")
    with growing_sources(source, nbest) as sources:
        lists = scored_lists(nbest, sources, features, how.batch)
        write_choices(lists, model, replace(holes, sentences=sources.count), outputs)


def scored_lists(nbest: str, sources: Sources, features: FeatureSet, batch: int) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence with all features, as a reader of the scored list would.

    Raises:
        InputError: a list from a pipe ends within a line: who wrote it was stopped.
    """
    live = is_live(nbest)
    for sentences, columns in score_list(nbest, sources, features, batch):
        rows = written(columns)
        for sentence in sentences:
            if live and not sentence.lines[-1].line.endswith(b"\n"):
                raise InputError(f"{sentence.place(sentence.lines[-1])}: the list ends within this line")
            hypotheses = tuple(parse_line(with_features(line, next(rows)), line.number) for line in sentence.lines)
            yield SentenceList(sentence.sentence, hypotheses, nbest)
