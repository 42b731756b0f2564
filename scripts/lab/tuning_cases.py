"""Tuning problems with test lists, for the scripts that compare tuning methods."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from moses_io.filters import Filters
from rerank.linear.candidates import FeatureSpace
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning
from rerank.tuning.tune import make_tuning
from rerank.tuning.tuning_set import Extracted, Lists, TuningSet, read_problem

METRIC = Metric("bleu")
OTHERS = ("choose", "test")


class Case:
    """A tuning problem, its new features (initial weight 0), the random seed of the tuners, and other lists by name."""

    def __init__(self, problem: Problem, seed: int, others: dict[str, TuningSet]) -> None:
        self.problem, self.seed, self.others = problem, seed, others
        columns = problem.candidates.space.columns_by_feature
        self.new = {name: own for name, own in columns.items() if not problem.initial[own].any()}

    def tuning(self, tuner: str) -> Tuning:
        """Return the settings of a tuner with the seed of the case."""
        return make_tuning({"tuner": tuner} | ({} if tuner == "expected" else {"seed": self.seed}))

    def score(self, rows: np.ndarray) -> float:
        """Return BLEU of (n, size) statistics."""
        return 100 * float(self.problem.formula.score(rows.sum(axis=0)))

    def on_others(self, weights: np.ndarray) -> dict[str, float]:
        """Return BLEU of the other lists."""
        own = self.problem.candidates.space.weights(weights)
        return {name: self.score(other.chosen(own)) for name, other in self.others.items()}


def listed(data: Path, part: str, work: Path | None = None) -> Lists:
    """Return an n-best list with its reference. `work`: folder of the same list with more features."""
    return Lists([str((work or data) / f"{part}.nbest.gz")], [str(data / f"{part}.en")], Filters(""))


def listed_problem(data: Path, part: str, work: Path | None = None) -> Problem:
    """Read the list of `listed` as a tuning problem, with BLEU and Moses' weights as initial weights."""
    return read_problem(listed(data, part, work), str(data / "moses.ini"), make_tuning({}))[0]


def extracted(folder: Path, part: str) -> Extracted:
    """Return the files of Moses' extractor for a part, in a folder of $MOSES_RERANK_DATA/tuning."""
    return Extracted(*(str(folder / f"{part}.{kind}.dat.gz") for kind in ("features", "scores")))


def extracted_problem(folder: Path, part: str) -> Problem:
    """Read the files of Moses' extractor as a tuning problem, with BLEU and the initial weights of the folder."""
    return read_problem(extracted(folder, part), str(folder / "init.dense"), make_tuning({}))[0]


def cases(data: Path, works: list[Path]) -> Iterator[Case]:
    """Yield the tuning problems of the data: one per work folder, or five seeds of extracted data."""
    if not works:
        problem, test = extracted_problem(data, "dev"), extracted(data, "test").read(METRIC)
        for seed in range(1, 6):
            yield Case(problem, 100 * seed, {"test": test})
    for work in works:
        parts = [part for part in OTHERS if (work / f"{part}.nbest.gz").exists()]
        others = {part: listed(data, part, work).read(METRIC) for part in parts}
        yield Case(listed_problem(data, "dev", work), 1, others)


def with_features(problem: Problem, columns: dict[str, np.ndarray]) -> Problem:
    """Return a problem without sparse features with new features: (N,) values by name, without bounds on weights."""
    candidates, count = problem.candidates, len(columns)
    space = FeatureSpace((*candidates.space.dense, *((name, 1) for name in columns)))
    wider = replace(
        candidates, space=space, dense=np.column_stack([candidates.dense, *columns.values()])
    )  # (N, D + new)
    lower, upper = (
        np.append(bound, np.full(count, end)) for bound, end in zip(problem.bounds(), (-np.inf, np.inf), strict=True)
    )
    initial = np.append(problem.initial, np.zeros(count))
    return replace(problem, candidates=wider, initial=initial, lower=lower, upper=upper)


def sampled(case: Case, sentences: int, draw: int) -> Case:
    """Return the case with some random sentences of dev, and the other sentences as the additional list `rest`."""
    count = len(case.problem.candidates.sentences)
    if not 0 < sentences < count:
        raise SystemExit(f"--sentences: expected 1 to {count - 1}, so that other sentences remain, found {sentences}")
    order = np.random.default_rng(draw).permutation(count)  # (n,)
    part, rest = case.problem.subset(np.sort(order[:sentences])), case.problem.subset(np.sort(order[sentences:]))
    return Case(part, case.seed, {"rest": TuningSet(rest.candidates, rest.statistics), **case.others})
