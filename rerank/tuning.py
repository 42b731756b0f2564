"""Tuning: an n-best list and its references become arrays, a tuner finds weights, the weights become an ini."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from features.progress import note, progress_bar
from moses_io.nbest import check_id, read_nbest, without_marks
from moses_io.text import read_references, tokens
from moses_io.weights import read_weights, write_weights
from rerank import __version__, kbmira
from rerank.bleu import SIGNATURE, SentenceReferences
from rerank.candidates import Array, Candidates, Collector
from rerank.weights import compare, normalized


@dataclass(frozen=True)
class TuningSet:
    """A list with the BLEU statistics of each candidate, (N, 9)."""

    candidates: Candidates
    statistics: Array


def read_tuning_set(nbest: str, references: Sequence[Sequence[str]]) -> TuningSet:
    """Read a list and count its statistics; references are found by the id of the sentence."""
    collector, statistics = Collector(), []
    with progress_bar("read list", len(references[0])) as bar:
        for sentence_list in without_marks(read_nbest(nbest)):
            check_id(sentence_list, len(references[0]), "reference")
            collector.add(sentence_list)
            counted = SentenceReferences([tokens(lines[sentence_list.sentence]) for lines in references])
            statistics += [counted.statistics(tokens(hypothesis.text)) for hypothesis in sentence_list.hypotheses]
            bar.advance(1, "")
    return TuningSet(collector.candidates(), np.array(statistics, dtype=np.float64))


def tune(nbest: str, references: Sequence[str], start: str, settings: kbmira.KbmiraSettings, output: str) -> None:
    """Tune the weights of a list from start weights and write them as an ini, divided by their absolute sum."""
    weights = read_weights(start)
    tuning_set = read_tuning_set(nbest, read_references(references))
    space = tuning_set.candidates.space
    compare(space, weights, start)
    _warn_of_names(tuning_set.candidates)
    tuned = kbmira.tune(tuning_set.candidates, tuning_set.statistics, space.vector(weights), settings)
    signature = f"{settings.signature}|metric:{SIGNATURE}|references:{len(references)}|version:{__version__}"
    gain = f"BLEU on the tuning set {100 * tuned.start:.2f} -> {100 * tuned.metric:.2f}"
    note(f"{gain} ({len(tuning_set.candidates.sentences)} sentences, {len(tuning_set.statistics)} candidates)")
    note(f"signature: {signature}")
    write_weights(output, space.weights(normalized(tuned.weights, space.dense_size)), [signature, gain])


def _warn_of_names(candidates: Candidates) -> None:
    """Name features that are in every line but have a name that Moses' tools take for a sparse one."""
    for name, count in candidates.space.dense:
        if "_" in name:
            note(f"warning: feature {name!r} has {count} values and '_' in its name; Moses' tools tear it apart")
    if candidates.sparse is None:
        return
    counts = np.bincount(candidates.sparse.columns, minlength=len(candidates.space.sparse))
    for column in np.flatnonzero(counts == len(candidates.dense)):
        name = candidates.space.sparse[column]
        note(f"warning: feature {name!r} is in every line, but Moses' tools take a name with '_' for a sparse feature")
