"""Folds tell a feature that helps from one that does not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.files.errors import InputError
from moses_io.weights import read_weights
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import STATISTICS, Metric
from rerank.tuners.problem import Problem
from rerank.tuning.folds import cross_validate, fold_weights, without
from rerank.tuning.tune import settle

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def problem(noise: float) -> Problem:
    """Sixty sentences; the first feature knows a little, the second knows all but for `noise`."""
    rng = np.random.default_rng(1)
    matches = np.sort(rng.integers(1, 9, (600, 4)), axis=1)[:, ::-1]
    statistics = np.empty((600, STATISTICS))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2], statistics[:, -1] = matches, [10, 9, 8, 7], 10
    quality = matches.sum(axis=1)
    dense = np.c_[quality + 9 * rng.normal(size=600), quality + noise * rng.normal(size=600)]
    nothing = Sparse(np.zeros(601, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    space = FeatureSpace((("Old", 1), ("New", 1)))
    candidates = Candidates(space, np.arange(60), np.arange(0, 601, 10), dense, nothing)
    return Problem(candidates, statistics, Metric("bleu").formula, np.array([1.0, 0.0]))


def test_a_feature_that_helps_and_one_that_does_not() -> None:
    tuning = settle({"tuner": "kbmira", "iterations": 10})
    good = cross_validate(problem(1.0), tuning, np.array([1]), 5)
    assert good.new > good.old + 0.05 and good.p < 0.0005
    assert [weights.tolist() for weights in good.weights] == [
        weights.tolist() for _, weights in fold_weights(problem(1.0), tuning, 5)
    ]
    bad = cross_validate(problem(1e6), tuning, np.array([1]), 5)
    assert bad.old == pytest.approx(good.old) and bad.p > 0.2


def test_without_a_column_nothing_is_known_of_it() -> None:
    given = without(problem(1.0), np.array([1]))
    assert not given.candidates.dense[:, 1].any() and given.start.tolist() == [1, 0]
    assert given.candidates.dense[:, 0].tolist() == problem(1.0).candidates.dense[:, 0].tolist()
    with pytest.raises(InputError, match="from 2 to the 60 sentences, found 61"):
        cross_validate(given, settle({}), np.array([1]), 61)
    with pytest.raises(InputError, match="expected a list of 2 sentences or more, found 1"):
        next(fold_weights(given.of(np.array([0])), settle({}), 1))


def test_the_command_tells_the_gain_and_keeps_the_start_only_if_asked(command: Command, write: Write) -> None:
    """The new feature is pure chance: folds see it, and the start comes back with --fallback alone."""
    rng = np.random.default_rng(2)
    texts = ["the old house is red .", "the house is red .", "a red old house .", "old the red is house ."]
    lines = [
        f"{n} ||| {text} ||| Old= {-place} New= {rng.normal():.3f} ||| 0\n"
        for n in range(30)
        for place, text in enumerate(texts)
    ]
    nbest, reference = write("list", "".join(lines)), write("ref", f"{texts[0]}\n" * 30)
    start = write("start", "[weight]\nOld= 1\n")
    arguments = ("tune", nbest, "--reference", reference, "--initial-weights", start, "--folds", 3)
    status, _, err = command(*arguments)
    assert status == 0 and "in 3-fold cross-validation" in err
    assert "warning: the new features (New) do not improve the score" in err
    status, kept, err = command(*arguments, "--fallback")
    assert read_weights(str(write("kept", kept))) == {"Old": (1.0,), "New": (0.0,)}
    assert b"# the initial weights are kept: the new features do not improve the cross-validated score\n" in kept
    both = write("both", "[weight]\nOld= 1\nNew= 0\n")
    status, _, err = command(*arguments[:5], both, *arguments[6:], "--fallback")
    assert status == 0 and "no new features to cross-validate" in err
    assert command(*arguments[:-2], "--fallback")[0] == 2
