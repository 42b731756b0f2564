"""Choice of the size of a shortlist in cross-validation on dev, with its loss in oracle score."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from features.compilation_status import compilation_shown
from features.progress import log, progress_bar
from moses_io.files.json_files import read_record, write_json
from moses_io.weights import Weights
from rerank.linear.candidates import highest
from rerank.linear.shortlist import ShortlistSettings
from rerank.linear.weights import load_weights
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import partition, usable_folds
from rerank.tuning.tune import make_tuning
from rerank.tuning.tuning_set import Lists, read_problem

SIZES = (10, 20, 30, 50)
"""Sizes that are compared. Dev gets all features for the largest one."""

TOLERANCE = 0.02
"""Maximum loss in cross-validated score, in points of 100, for which a smaller shortlist is preferred."""

CHOICE = "shortlist.json"
"""Name of the file in the folder of an experiment."""

FORMAT = 2
"""Version of the file format. Results in another format are computed again."""


class SizeScore(NamedTuple):
    """Cross-validated score, 0 … 100, with a shortlist of this size."""

    size: int
    score: float


@dataclass(frozen=True)
class ShortlistChoice:
    """A shortlist and how it was chosen. Scores are in 0 … 100.

    Attributes:
        settings: size and features.
        compared: scores of the compared sizes, empty if the size was given.
        metric: name of the metric.
        oracle_of_all: oracle score of all candidates of dev.
        oracle: oracle score of the shortlist of dev.
    """

    settings: ShortlistSettings
    compared: tuple[SizeScore, ...]
    metric: str
    oracle_of_all: float
    oracle: float


@compilation_shown()
def choose_shortlist(
    whole: Lists,
    scored: Lists,
    weights: tuple[str, str],
    features: tuple[str, ...],
    sizes: Sequence[int],
    metric: str,
    folds: int,
) -> ShortlistChoice:
    """Return the smallest size whose cross-validated score is within `TOLERANCE` of the best one, and log the scores.

    For each fold, the shortlist is selected by weights that are tuned on the other folds, and so are the final weights.

    Args:
        whole: list of dev with all candidates and all features except those of the shortlist.
        scored: list of dev with the candidates of the largest shortlist and all features.
        weights: paths of the initial weights and of the weights that selected these candidates, tuned on all of dev.
        features: labels of the features that only the shortlist has.
        sizes: sizes to compare. A single one is taken as it is.
        metric: metric to tune for.
        folds: number of folds, at most one for each sentence. With a single sentence, the first size is taken.

    Raises:
        InputError: a list, the references or the weights cannot be read or do not match.
    """
    initial, tuned = weights
    tuning = make_tuning({"metric": metric, "tuner": "kbmira", "runs": 1})  # one run, as there are many tunings
    (entire, _), (problem, _) = (read_problem(lists, initial, tuning) for lists in (whole, scored))
    folds = usable_folds(folds, len(problem.candidates.sentences))
    compared = tuple(_compare(entire, problem, sizes, tuning, folds)) if len(sizes) > 1 < folds else ()
    best = max((each.score for each in compared), default=0.0)
    size = next((each.size for each in compared if each.score >= best - TOLERANCE), sizes[0])
    choice = ShortlistChoice(
        settings=ShortlistSettings(size, features),
        compared=compared,
        metric=problem.formula.name,
        oracle_of_all=_oracle(entire),
        oracle=_oracle(shortened(problem, load_weights(tuned), size)),
    )
    _report(choice, folds)
    return choice


def write_choice(path: str, choice: ShortlistChoice) -> None:
    """Write a choice as JSON."""
    write_json(path, asdict(choice), indent=1)


def read_choice(path: str) -> ShortlistChoice:
    """Read a file that `write_choice` wrote. Raises `InputError` if its content is anything else."""
    return read_record(path, ShortlistChoice)


def _compare(
    entire: Problem, problem: Problem, sizes: Sequence[int], tuning: Tuning, folds: int
) -> Iterator[SizeScore]:
    """Yield the cross-validated score with a shortlist of each size."""
    sentences, formula = len(problem.candidates.sentences), problem.formula
    statistics = {size: np.zeros((sentences, formula.size)) for size in sizes}
    with progress_bar("compare sizes", folds) as bar:
        for held_out in partition(sentences, folds):
            rest = np.setdiff1d(np.arange(sentences), held_out)
            first = entire.candidates.space.weights(run(entire.subset(rest), tuning).weights)
            for size in sizes:
                shorter = shortened(problem, first, size)
                statistics[size][held_out] = shorter.subset(held_out).chosen(run(shorter.subset(rest), tuning).weights)
            bar.advance(1, "")
    for size in sizes:
        yield SizeScore(size, 100 * float(formula.score(statistics[size].sum(axis=0))))  # ()


def shortened(problem: Problem, weights: Weights, size: int) -> Problem:
    """Return the problem with the `size` best candidates of each sentence under weights by feature name.

    A feature without a weight does not count. Ties are in the order of the list. `Shortlist` also selects the candidate
    with Moses' highest total and the one that Moses printed. Here they are selected only if they are among the best.
    """
    candidates = problem.candidates
    counts = np.diff(candidates.offsets)  # (n,)
    scores = candidates.scores(candidates.space.vector(weights))  # (N,)
    order = np.lexsort((-scores, np.repeat(np.arange(len(counts)), counts)))  # (N,) by sentence, best first
    ranks = np.arange(len(order)) - np.repeat(candidates.offsets[:-1], counts)  # (N,)
    return problem.rows(np.sort(order[ranks < size]))  # (kept,) in the order of the list


def _oracle(problem: Problem) -> float:
    """Return the metric, 0 … 100, of the candidates with the highest smoothed sentence scores."""
    best = highest(problem.formula.smoothed(problem.statistics), problem.candidates.offsets)  # (n,)
    return 100 * float(problem.formula.score(problem.statistics[best].sum(axis=0)))  # ()


def _report(choice: ShortlistChoice, folds: int) -> None:
    """Log the compared sizes and the oracle scores."""
    if choice.compared:
        scores = ", ".join(f"{each.size}: {each.score:.2f}" for each in choice.compared)
        log.info(f"size of the shortlist: {choice.metric} in {folds}-fold cross-validation: {scores}")
    labels = ", ".join(choice.settings.features)
    log.info(f"{labels}: computed for the {choice.settings.size} best candidates of each sentence")
    oracles = f"{choice.oracle:.2f} of the shortlist, {choice.oracle_of_all:.2f} of all candidates"
    log.info(f"oracle {choice.metric} on dev: {oracles}")
