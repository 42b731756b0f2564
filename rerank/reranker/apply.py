"""A reranker applied to a list: features, weights, choice, each batch of sentences as soon as it is complete."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from features.feature import Resources
from moses_io.errors import InputError
from moses_io.nbest import read_moses_output
from moses_io.streams import is_live
from rerank.confidence.file import CONFIDENCE, read_estimator
from rerank.linear.selection import Estimator, Outputs, read_holes, write_choices
from rerank.reranker.folder import WEIGHTS
from rerank.reranker.reranker import Reranker


@dataclass(frozen=True)
class Application:
    """How a reranker is applied.

    Attributes:
        features: `KIND[:ARG]` by label of features that take the place of its own.
        allow_code: whether features that run code of users may do so.
        batch: sentences that are scored together, at most; 0 for as many as `score` takes.
        on_missing: what stands for a sentence without candidates: `error`, `blank`, or a file with a line for each.
        moses_output: file with Moses' own output, a line a source sentence; empty if that is the candidates with the
            highest totals.
    """

    features: Mapping[str, str] = field(default_factory=dict)
    allow_code: bool = False
    batch: int = 0
    on_missing: str = "error"
    moses_output: str = ""


def apply(folder: str, nbest: str, source: str, outputs: Outputs, resources: Resources, how: Application) -> None:
    """Write the best candidate of each sentence of a list, whose ids go up; one line a source sentence, always.

    Raises:
        InputError: the folder is no reranker, or one without what confidence takes, the list lacks features that it has
            weights for, or Moses' output has another number of lines than the source.
    """
    holes, output = read_holes(None, None, how.on_missing), how.moses_output
    known = source if output and os.path.isfile(source) and not is_live(nbest) else ""  # else its end is not there yet
    moses_output = read_moses_output(output, known) if output else None
    reranker = Reranker.load(
        folder,
        features=how.features,
        allow_code=how.allow_code,
        device=resources.device,
        precision=resources.precision,
        cache=resources.cache,
    )
    estimator = _read_estimator(Path(folder), bool(output)) if outputs.confidence else None
    write_choices(reranker.rankings(nbest, source, holes, how.batch, moses_output), outputs, estimator)


def _read_estimator(folder: Path, moses_output: bool) -> Estimator:
    if not (folder / CONFIDENCE).is_file():
        made = "make it anew by `moses-rerank run` of this version"
        raise InputError(f"{folder}: a reranker without {CONFIDENCE}, which tells how good its choices are; {made}")
    return read_estimator(str(folder / CONFIDENCE), str(folder / WEIGHTS), moses_output).estimate
