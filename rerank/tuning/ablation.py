"""What each new feature is worth: alone beside Moses' own, all of them, and all but it; on folds of dev and on test."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from features.progress import progress_bar
from rerank.candidates import Array, Integers
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import out_of_fold, p_value, without

BASE = "Moses' features"


@dataclass(frozen=True)
class Row:
    """A set of features.

    Attributes:
        name: of the set.
        dev: metric, 0 … 100, out of fold.
        dev_p: share of resampled sets on which the better one of the two compared is no better (see `against`).
        test: metric on test, tuned on all of dev.
        test_p: likewise.
        against: the name of the set that it is compared with; empty for the first.
    """

    name: str
    dev: float
    dev_p: float | None
    test: float
    test_p: float | None
    against: str


def ablate(dev: Problem, test: Problem, tuning: Tuning, groups: dict[str, Integers], folds: int) -> list[Row]:
    """Tune, once each, on all choices of features that leave one group out or have it alone.

    Args:
        dev: all features.
        test: the same, of another set.
        tuning: of which one run is made.
        groups: dense columns of each new feature.
        folds: parts of dev.
    """
    once = replace(tuning, runs=1)
    every = np.concatenate(list(groups.values()))
    left_out: dict[str, Integers] = {BASE: every}
    left_out |= {f"and {name}": np.setdiff1d(every, own) for name, own in groups.items()}
    left_out |= {"and all": np.array([], dtype=np.int64)}
    left_out |= {f"all but {name}": own for name, own in groups.items()} if len(groups) > 1 else {}
    found: dict[str, tuple[Array, Array]] = {}
    with progress_bar("ablation", (folds + 1) * len(left_out)) as bar:
        for name, columns in left_out.items():
            given = without(dev, columns)
            held = out_of_fold(given, once, folds, bar)
            weights = run(given, once).weights
            by_name = test.candidates.space.vector(dev.candidates.space.weights(weights))
            found[name] = held, test.chosen(by_name)
            bar.advance(1, "")
    return [_row(name, found, dev) for name in left_out]


def _row(name: str, found: dict[str, tuple[Array, Array]], dev: Problem) -> Row:
    against = "" if name == BASE else "and all" if name.startswith("all but ") else BASE
    scores = [100 * float(dev.formula.score(each.sum(axis=0))) for each in found[name]]
    ps: list[float | None] = [None, None]
    if against:
        sides = [
            sorted((mine, other), key=lambda side: float(dev.formula.score(side.sum(axis=0))))
            for mine, other in zip(found[name], found[against], strict=True)
        ]
        ps = [p_value(dev.formula, worse, better) for worse, better in sides]
    return Row(name, scores[0], ps[0], scores[1], ps[1], against)


def lines(rows: Sequence[Row], metric: str, folds: int) -> list[str]:
    """Return a table of them."""
    width = max(len(row.name) for row in rows)
    head = f"{'features':<{width}}  {'dev, out of fold':>18}  {'p':>6}  {'test':>8}  {'p':>6}"
    told = [
        f"What each feature is worth ({metric}, {folds} folds, one run each; p against {BASE}, below against all)",
        head,
    ]
    for row in rows:
        dev_p, test_p = ("" if p is None else f"{p:.3f}" for p in (row.dev_p, row.test_p))
        told.append(f"{row.name:<{width}}  {row.dev:>18.2f}  {dev_p:>6}  {row.test:>8.2f}  {test_p:>6}".rstrip())
    by_name = {row.name: row for row in rows}
    if by_name["and all"].dev <= by_name[BASE].dev:
        told.append("warning: the new features do not help on sentences that were not tuned on")
    return told


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return them as plain values."""
    return [asdict(row) for row in rows]
