"""Rows of the ablation on problems whose features are known to be good or useless."""

from dataclasses import replace

import numpy as np

from rerank.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.bleu import STATISTICS
from rerank.metrics.metric import Metric
from rerank.tuners.problem import Problem
from rerank.tuning.ablation import BASE, ablate, lines
from rerank.tuning.settings import settle


def problem(seed: int, sentences: int = 60) -> Problem:
    """The first feature knows a little, `Good` nearly all, `Chance` nothing."""
    rng, size = np.random.default_rng(seed), 10 * sentences
    matches = np.sort(rng.integers(1, 9, (size, 4)), axis=1)[:, ::-1]
    statistics = np.empty((size, STATISTICS))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2], statistics[:, -1] = matches, [10, 9, 8, 7], 10
    quality = matches.sum(axis=1)
    dense = np.c_[quality + 9 * rng.normal(size=size), quality + rng.normal(size=size), rng.normal(size=size)]
    nothing = Sparse(np.zeros(size + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    space = FeatureSpace((("Old", 1), ("Good", 1), ("Chance", 1)))
    candidates = Candidates(space, np.arange(sentences), np.arange(0, size + 1, 10), dense, nothing)
    return Problem(candidates, statistics, Metric("bleu").formula, np.array([1.0, 0.0, 0.0]))


def test_rows() -> None:
    new = {"Good": np.array([1]), "Chance": np.array([2])}
    rows = ablate(problem(1), problem(2), settle({"iterations": 10}), new, 5)
    assert [row.name for row in rows] == [
        BASE, "and Good", "and Chance", "and all", "all but Good", "all but Chance",
    ]  # fmt: skip
    by_name = {row.name: row for row in rows}
    base, good, every = by_name[BASE], by_name["and Good"], by_name["and all"]
    for low, high in ((base, good), (base, every), (by_name["all but Good"], every)):
        assert high.dev > low.dev + 5 and high.test > low.test + 5
    assert good.dev_p is not None and good.dev_p < 0.0005 and good.test_p is not None and good.test_p < 0.0005
    chance = by_name["all but Chance"]
    assert abs(chance.dev - every.dev) < 3 and chance.against == "and all"
    assert base.dev_p is None
    table = lines(rows, "BLEU", 5)
    assert len(table) == 8 and "warning" not in table[-1]


def test_features_that_do_not_help_are_told_of() -> None:
    rows = ablate(problem(1), problem(2), settle({"iterations": 10}), {"Chance": np.array([2])}, 5)
    assert [row.name for row in rows] == [BASE, "and Chance", "and all"]
    worse = [*rows[:2], replace(rows[2], dev=rows[0].dev - 1)]
    assert lines(worse, "BLEU", 5)[-1].startswith("warning: the new features do not help")
