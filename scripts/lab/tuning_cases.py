"""Problems to tune on, with lists to measure on, for the scripts that compare ways of tuning."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from moses_io.filters import Filters
from rerank.linear.candidates import FeatureSpace
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.tune import settle
from rerank.tuning.tuning_set import Extracted, Lists, TuningSet, read_problem

METRIC = Metric("bleu")
OTHERS = ("choose", "test")


class Case:
    """A problem, its features whose start weights are 0, the seed of its tuners, and other lists by their names."""

    def __init__(self, problem: Problem, seed: int, others: dict[str, TuningSet]) -> None:
        self.problem, self.seed, self.others = problem, seed, others
        columns = problem.candidates.space.columns_by_feature
        self.new = {name: own for name, own in columns.items() if not problem.start[own].any()}

    def tuning(self, tuner: str) -> Tuning:
        """Return how a tuner is run with the seed."""
        return settle({"tuner": tuner} | ({} if tuner == "expected" else {"seed": self.seed}))

    def score(self, rows: np.ndarray) -> float:
        """Return BLEU of (n, size) statistics."""
        return 100 * float(self.problem.formula.score(rows.sum(axis=0)))

    def on_others(self, weights: np.ndarray) -> dict[str, float]:
        """Return BLEU of the other lists."""
        own = self.problem.candidates.space.weights(weights)
        return {name: self.score(other.chosen(own)) for name, other in self.others.items()}


def listed(data: Path, part: str, work: Path | None = None) -> Lists:
    """Return a list of the data, or the same in another folder with more features, and its reference."""
    return Lists([str((work or data) / f"{part}.nbest.gz")], [str(data / f"{part}.en")], Filters(""))


def listed_problem(data: Path, part: str, work: Path | None = None) -> Problem:
    """Read such a list, to be tuned for BLEU from Moses' weights."""
    return read_problem(listed(data, part, work), str(data / "moses.ini"), settle({}))[0]


def extracted(folder: Path, part: str) -> Extracted:
    """Return what Moses' extractor wrote for a part of a folder of $MOSES_RERANK_DATA/tuning."""
    return Extracted(*(str(folder / f"{part}.{kind}.dat.gz") for kind in ("features", "scores")))


def extracted_problem(folder: Path, part: str) -> Problem:
    """Read what Moses' extractor wrote, to be tuned for BLEU from the weights of the folder."""
    return read_problem(extracted(folder, part), str(folder / "init.dense"), settle({}))[0]


def cases(data: Path, works: list[Path]) -> Iterator[Case]:
    """Read one problem after the other."""
    if not works:
        problem, test = extracted_problem(data, "dev"), extracted(data, "test").read(METRIC)
        for seed in range(1, 6):
            yield Case(problem, 100 * seed, {"test": test})
    for work in works:
        there = [part for part in OTHERS if (work / f"{part}.nbest.gz").exists()]
        others = {part: listed(data, part, work).read(METRIC) for part in there}
        yield Case(listed_problem(data, "dev", work), 1, others)


def with_features(problem: Problem, columns: dict[str, np.ndarray]) -> Problem:
    """Return a problem that has no sparse features with new ones, each (N,) by its name, that may have any weight."""
    candidates, count = problem.candidates, len(columns)
    space = FeatureSpace((*candidates.space.dense, *((name, 1) for name in columns)))
    wider = replace(
        candidates, space=space, dense=np.column_stack([candidates.dense, *columns.values()])
    )  # (N, D + new)
    lower, upper = (
        np.append(bound, np.full(count, end)) for bound, end in zip(problem.bounds(), (-np.inf, np.inf), strict=True)
    )
    start = np.append(problem.start, np.zeros(count))
    return replace(problem, candidates=wider, start=start, lower=lower, upper=upper)


def sampled(case: Case, sentences: int, draw: int) -> Case:
    """Return the case with some sentences of dev, and the others as a list of its own."""
    count = len(case.problem.candidates.sentences)
    if not 0 < sentences < count:
        raise SystemExit(f"--sentences: expected 1 to {count - 1}, so that there is a rest, found {sentences}")
    order = np.random.default_rng(draw).permutation(count)  # (n,)
    part, rest = case.problem.of(np.sort(order[:sentences])), case.problem.of(np.sort(order[sentences:]))
    return Case(part, case.seed, {"rest": TuningSet(rest.candidates, rest.statistics), **case.others})
