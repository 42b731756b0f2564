"""What each new feature is worth: alone beside Moses' own, all of them, and all but it; on folds of dev and on test."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.progress import progress_bar
from moses_io.streams import open_output
from moses_io.text import encode
from rerank.metrics.significance import p_value
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import out_of_fold, without
from rerank.tuning.tune import FOLDS, groups, read_problem
from rerank.tuning.tuning_set import Lists

BASE = "Moses' features"


class Ablation(NamedTuple):
    """Scored lists, weights to start from, labels of the new features, and parts of dev; 0 for as many as usual."""

    dev: Lists
    test: Lists
    start: str
    features: tuple[str, ...]
    folds: int


@dataclass(frozen=True)
class FeatureSetScores:
    """What a set of features reaches: the metric, 0 … 100, out of fold on dev, and on test, tuned on all of dev.

    It is compared with the set named `against`, empty for the first; p is that of `rerank.metrics.significance`.
    """

    name: str
    dev: float
    dev_p: float | None
    test: float
    test_p: float | None
    against: str


class Chosen(NamedTuple):
    """(n, formula.size) statistics of the candidates that a set of features chooses."""

    dev: Array
    test: Array


def write_ablation(ablation: Ablation, tuning: Tuning, outputs: tuple[str, str]) -> None:
    """Compare the sets of features, and write a table and the same as JSON."""
    dev, test = (read_problem(lists, ablation.start, tuning)[0] for lists in (ablation.dev, ablation.test))
    columns = groups(dev.candidates.space)
    folds = min(ablation.folds or FOLDS, len(dev.candidates.sentences))
    rows = ablate(dev, test, tuning, {label: columns[label] for label in ablation.features}, folds)
    contents = "\n".join(lines(rows, dev.formula.name, folds)), json.dumps([asdict(row) for row in rows], indent=2)
    for path, content in zip(outputs, contents, strict=True):
        with open_output(path) as stream:
            stream.write(encode(content + "\n"))


def ablate(dev: Problem, test: Problem, tuning: Tuning, new: dict[str, Integers], folds: int) -> list[FeatureSetScores]:
    """Tune, once each, on all choices of features that leave a new one, by its dense columns, out or have it alone."""
    once = replace(tuning, runs=1)
    every = np.concatenate(list(new.values()))  # (columns,)
    left_out: dict[str, Integers] = {BASE: every}  # each (columns,)
    left_out |= {f"and {name}": np.setdiff1d(every, own) for name, own in new.items()}
    left_out |= {"and all": np.array([], dtype=np.int64)}
    left_out |= {f"all but {name}": own for name, own in new.items()} if len(new) > 1 else {}
    chosen: dict[str, Chosen] = {}
    with progress_bar("ablation", (folds + 1) * len(left_out)) as bar:
        for name, columns in left_out.items():
            rest = without(dev, columns)
            on_dev = out_of_fold(rest, once, folds, bar)
            weights = run(rest, once).weights
            vector = test.candidates.space.vector(dev.candidates.space.weights(weights))  # (size,), in test's own order
            chosen[name] = Chosen(dev=on_dev, test=test.chosen(vector))  # (n, formula.size) each
            bar.advance(1, "")
    return [_scores(name, chosen, dev) for name in left_out]


def _scores(name: str, chosen: dict[str, Chosen], dev: Problem) -> FeatureSetScores:
    against = "" if name == BASE else "and all" if name.startswith("all but ") else BASE
    mine, other = chosen[name], chosen.get(against)
    return FeatureSetScores(
        name=name,
        dev=100 * _score(dev, mine.dev),
        dev_p=p_value(dev.formula.score, mine.dev, other.dev) if other else None,
        test=100 * _score(dev, mine.test),
        test_p=p_value(dev.formula.score, mine.test, other.test) if other else None,
        against=against,
    )


def _score(problem: Problem, statistics: Array) -> float:
    return float(problem.formula.score(statistics.sum(axis=0)))  # ()


def lines(rows: Sequence[FeatureSetScores], metric: str, folds: int) -> list[str]:
    """Return a table of them."""
    width = max(len(row.name) for row in rows)
    table = [
        f"What each feature is worth ({metric}, {folds} folds, one run each; p against {BASE}, below against all)",
        f"{'features':<{width}}  {'dev, out of fold':>18}  {'p':>6}  {'test':>8}  {'p':>6}",
    ]
    for row in rows:
        dev_p, test_p = ("" if p is None else f"{p:.4f}" for p in (row.dev_p, row.test_p))
        table.append(f"{row.name:<{width}}  {row.dev:>18.2f}  {dev_p:>6}  {row.test:>8.2f}  {test_p:>6}".rstrip())
    by_name = {row.name: row for row in rows}
    if by_name["and all"].dev <= by_name[BASE].dev:
        table.append("warning: the new features do not help on sentences that were not tuned on")
    return table
