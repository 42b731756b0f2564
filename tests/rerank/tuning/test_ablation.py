"""Columns of the ablation on problems whose features are known to be good or useless."""

from dataclasses import replace

import numpy as np

from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import STATISTICS, Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.ablation import BASE, EVERY, ablate, against, reach
from rerank.tuning.settings import settle
from rerank.tuning.tuning_set import TuningSet


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


def in_columns(seed: int) -> TuningSet:
    test = problem(seed)
    return TuningSet(test.candidates, test.statistics)


def test_columns() -> None:
    new = {"Good": np.array([1]), "Chance": np.array([2])}
    column, weights = ablate(problem(1), settle({"tuner": "kbmira", "iterations": 5}), new, 3)
    test = reach(in_columns(2), weights, Metric("bleu"))
    names = [BASE, "and Good", "and Chance", EVERY, "all but Good", "all but Chance"]
    assert list(column) == list(test) == list(weights) == names
    for on in (column, test):
        for low, high in ((BASE, "and Good"), (BASE, EVERY), ("all but Good", EVERY)):
            assert on[high].score > on[low].score + 5
        p = on["and Good"].p_value
        assert p is not None and p < 0.0005
        assert on[BASE].p_value is None
    assert abs(column["all but Chance"].score - column[EVERY].score) < 3
    assert [against(name) for name in names] == ["", BASE, BASE, BASE, EVERY, EVERY]


def test_weights_that_look_at_a_test_set_are_those_of_all_of_dev() -> None:
    """On dev itself they reach what a tuning on all of it reaches, not what is reached out of fold."""
    dev = problem(1)
    _, weights = ablate(dev, settle({"tuner": "kbmira", "iterations": 5}), {"Good": np.array([1])}, 3)
    tuned = run(dev, replace(settle({"tuner": "kbmira", "iterations": 5}), runs=1))
    column = reach(TuningSet(dev.candidates, dev.statistics), weights, Metric("bleu"))
    assert column[EVERY].score == 100 * tuned.metric
    assert weights[BASE]["Good"] == (0.0,)
