"""Tuning: an n-best list and its references become arrays, a tuner finds weights, the weights become an ini."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

import numpy as np

from features.progress import note, progress_bar
from moses_io.errors import InputError
from moses_io.extractor import read_blocks
from moses_io.nbest import check_id, read_nbest, without_marks
from moses_io.text import read_references
from moses_io.weights import read_weights, write_weights
from rerank import __version__
from rerank.candidates import Array, Candidates, Collector
from rerank.metrics import Metric
from rerank.trust import cross_validate
from rerank.tuners.problem import Problem, Tuned
from rerank.tuners.table import Tuning, run
from rerank.weights import compare, normalized


@dataclass(frozen=True)
class TuningSet:
    """A list with the statistics of each candidate, (N, metric.size)."""

    candidates: Candidates
    statistics: Array


def read_tuning_set(nbest: str, references: Sequence[Sequence[str]], metric: Metric) -> TuningSet:
    """Read a list and count its statistics; references are found by the id of the sentence."""
    collector, statistics = Collector(), []
    with progress_bar("read list", len(references[0])) as bar:
        for sentence_list in without_marks(read_nbest(nbest)):
            check_id(sentence_list, len(references[0]), "reference")
            collector.add(sentence_list)
            count = metric.counter([lines[sentence_list.sentence] for lines in references])
            known: dict[str, list[float]] = {}
            for hypothesis in sentence_list.hypotheses:
                if hypothesis.text not in known:
                    known[hypothesis.text] = count(hypothesis.text)
                statistics.append(known[hypothesis.text])
            bar.advance(1, "")
    return TuningSet(collector.candidates(), np.array(statistics, dtype=np.float64))


def read_extracted(features: str, statistics: str) -> TuningSet:
    """Read what Moses' extractor wrote, with BLEU statistics.

    Raises:
        InputError: the files do not go together, or the statistics are not those of BLEU.
    """
    collector = Collector()
    rows: list[tuple[float, ...]] = []
    for block, counted in zip_longest(read_blocks(features, "FEATURES"), read_blocks(statistics, "SCORES")):
        if block is None or counted is None:
            raise InputError(f"{features} and {statistics} do not have the same number of sentences")
        if (block.sentence, len(block.rows)) != (counted.sentence, len(counted.rows)):
            raise InputError(f"{counted.place}: not the sentence, or not the candidates, of {block.place}")
        if counted.names != ("BLEU",):
            raise InputError(f"{counted.place}: expected statistics of BLEU, found {' '.join(counted.names)}")
        labels = [name.rpartition("_")[0] or name for name in block.names]
        dense = tuple((label, len(list(group))) for label, group in groupby(labels))
        collector.add_rows(block.sentence, dense, block.rows, block.sparse)
        rows += counted.rows
    if not rows:
        raise InputError(f"{features}: the file is empty")
    return TuningSet(collector.candidates(), np.array(rows, dtype=np.float64))


@dataclass(frozen=True)
class Caution:
    """Whether new features are looked at on folds before they are believed in.

    Attributes:
        folds: parts of the tuning set; 0 for no look.
        fallback: write the start weights where the new features do not help.

    Raises:
        InputError: a fallback without folds.
    """

    folds: int = 0
    fallback: bool = False

    def __post_init__(self) -> None:
        if self.fallback and not self.folds:
            raise InputError("--fallback needs --folds, which tell whether new features help")


def tune(nbest: str, references: Sequence[str], start: str, tuning: Tuning, output: str, caution: Caution) -> None:
    """Tune the weights of a list from start weights and write them as an ini, divided by their absolute sum."""
    metric = Metric(tuning.metric)
    tuning_set = read_tuning_set(nbest, read_references(references), metric)
    _tune(tuning_set, metric, start, tuning, f"references:{len(references)}", output, caution)


def tune_extracted(features: str, statistics: str, start: str, tuning: Tuning, output: str, caution: Caution) -> None:
    """Tune straight from the files of Moses' extractor."""
    if tuning.metric != "bleu":
        raise InputError(f"metric {tuning.metric!r}: the files of an extractor are tuned on their own statistics, BLEU")
    _tune(read_extracted(features, statistics), Metric("bleu"), start, tuning, "references:extracted", output, caution)


def _tune(
    tuning_set: TuningSet, metric: Metric, start: str, tuning: Tuning, told: str, output: str, caution: Caution
) -> None:
    weights, space = read_weights(start), tuning_set.candidates.space
    compare(space, weights, start)
    _warn_of_names(tuning_set.candidates)
    problem = Problem(tuning_set.candidates, tuning_set.statistics, metric, space.vector(weights))
    new = [name for name, _ in space.dense if name not in weights]
    helpful = not caution.folds or _help(problem, tuning, new, caution.folds)
    tuned = run(problem, tuning)
    if caution.fallback and not helpful:
        note("the start weights are kept")
        tuned = Tuned(normalized(problem.start, space.dense_size), tuned.start, tuned.start)
    signature = f"{tuning.signature}|metric:{metric.signature}|{told}|version:{__version__}"
    gain = f"{_name(tuning)} on the tuning set {100 * tuned.start:.2f} -> {100 * tuned.metric:.2f}"
    note(f"{gain} ({len(tuning_set.candidates.sentences)} sentences, {len(tuning_set.statistics)} candidates)")
    note(f"signature: {signature}")
    write_weights(output, space.weights(tuned.weights), [signature, gain])


def _help(problem: Problem, tuning: Tuning, new: list[str], folds: int) -> bool:
    """Tell what new features, or tuning alone where there are none, gain out of fold, and whether they do."""
    labels = [name for name, count in problem.candidates.space.dense for _ in range(count)]
    added = np.flatnonzero(np.isin(labels, new))
    if not len(added):
        raise InputError("--folds: all features have a start weight, there is nothing new to look at")
    trust = cross_validate(problem, tuning, added, folds)
    note(
        f"out of fold, {folds} folds: {_name(tuning)} {100 * trust.old:.2f} with the features of the start tuned anew, "
        f"{100 * trust.new:.2f} with {', '.join(new)} (p {trust.p:.3f})"
    )
    if trust.new <= trust.old:
        note(f"warning: the new features ({', '.join(new)}) do not help on sentences that were not tuned on")
    return trust.new > trust.old


def _name(tuning: Tuning) -> str:
    return "BLEU" if tuning.metric == "bleu" else tuning.metric


def _warn_of_names(candidates: Candidates) -> None:
    """Name features that are in every line but have a name that Moses' tools take for a sparse one."""
    for name, count in candidates.space.dense:
        if "_" in name:
            note(f"warning: feature {name!r} has {count} values and '_' in its name; Moses' tools tear it apart")
    counts = np.bincount(candidates.sparse.columns, minlength=len(candidates.space.sparse))
    for column in np.flatnonzero(counts == len(candidates.dense)):
        name = candidates.space.sparse[column]
        note(f"warning: feature {name!r} is in every line, but Moses' tools take a name with '_' for a sparse feature")
