"""Cross-validation of new features and the fallback to initial weights."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moses_io.files.errors import InputError
from moses_io.weights import read_weights
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.problem import Problem
from rerank.tuning.folds import cross_validate, fold_weights, partition, without
from rerank.tuning.tune import make_tuning

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def problem(noise: float) -> Problem:
    """Return 60 sentences. `Old` correlates weakly with BLEU, and `New` strongly for a small `noise`."""
    rng = np.random.default_rng(1)
    matches = np.sort(rng.integers(1, 9, (600, 4)), axis=1)[:, ::-1]
    statistics = np.empty((600, BLEU_SIZE))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2], statistics[:, -1] = matches, [10, 9, 8, 7], 10
    quality = matches.sum(axis=1)
    dense = np.c_[quality + 9 * rng.normal(size=600), quality + noise * rng.normal(size=600)]
    nothing = Sparse(np.zeros(601, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    space = FeatureSpace((("Old", 1), ("New", 1)))
    candidates = Candidates(space, np.arange(60), np.arange(0, 601, 10), dense, nothing)
    return Problem(candidates, statistics, Metric("bleu").formula, np.array([1.0, 0.0]))


def test_cross_validated_gain_of_a_good_and_a_useless_feature() -> None:
    tuning = make_tuning({"tuner": "kbmira", "iterations": 10})
    good = cross_validate(problem(1.0), tuning, np.array([1]), 5)
    assert good.new > good.old + 0.05 and good.p < 0.0005
    assert [weights.tolist() for weights in good.weights] == [
        weights.tolist() for _, weights in fold_weights(problem(1.0), tuning, 5)
    ]
    bad = cross_validate(problem(1e6), tuning, np.array([1]), 5)
    assert bad.old == pytest.approx(good.old) and bad.p > 0.2


def test_a_problem_without_a_column() -> None:
    given = without(problem(1.0), np.array([1]))
    assert not given.candidates.dense[:, 1].any() and given.initial.tolist() == [1, 0]
    assert given.candidates.dense[:, 0].tolist() == problem(1.0).candidates.dense[:, 0].tolist()
    with pytest.raises(InputError, match="from 2 to the 60 sentences, found 61"):
        cross_validate(given, make_tuning({}), np.array([1]), 61)
    with pytest.raises(InputError, match="expected a list of 2 sentences or more, found 1"):
        next(fold_weights(given.subset(np.array([0])), make_tuning({}), 1))


def test_the_initial_weights_are_compared_on_all_sentences() -> None:
    given = problem(1.0)
    validated = cross_validate(given, make_tuning({"tuner": "kbmira", "iterations": 10}), np.array([1]), 5)
    assert validated.initial == given.measure(given.initial) < validated.new - 0.05
    assert validated.p_initial is not None and validated.p_initial < 0.0005
    assert not validated.keeps_initial
    assert not replace(validated, initial=validated.new + 0.01, p_initial=0.5).keeps_initial
    assert replace(validated, initial=validated.new + 0.01, p_initial=0.1).keeps_initial
    assert not replace(validated, initial=validated.new - 0.01, p_initial=0.1).keeps_initial
    assert replace(validated, old=validated.new + 0.01, p=0.1).keeps_initial
    assert not replace(validated, old=validated.new + 0.01, p=0.5).keeps_initial


TEXTS = ["the old house is red .", "the house is red .", "a red old house .", "old the red is house ."]
"""Candidates, best first."""


def listed(new: Callable[[int, int], float]) -> str:
    """Return a list of 30 sentences. The feature `New` has a value for each sentence and the rank of a candidate.

    The feature `Old` is wrong for every third sentence.
    """
    return "".join(
        f"{n} ||| {text} ||| Old= {rank if n % 3 == 0 else -rank} New= {new(n, rank):.3f} ||| 0\n"
        for n in range(30)
        for rank, text in enumerate(TEXTS)
    )


@pytest.fixture
def tune(command: Command, write: Write) -> Callable[..., tuple[int, bytes, str]]:
    """Return a function that tunes a list. The default initial weights are 1 for `Old` and none for `New`."""

    def tuned(text: str, *options: Any, initial: str = "Old= 1") -> tuple[int, bytes, str]:
        ini, reference = write("initial", f"[weight]\n{initial}\n"), write("ref", f"{TEXTS[0]}\n" * 30)
        return command("tune", write("list", text), "--reference", reference, "--initial-weights", ini, *options)

    return tuned


def test_initial_weights_are_kept_only_if_they_are_better(
    tune: Callable[..., tuple[int, bytes, str]], write: Write
) -> None:
    """The new feature is good for one half of the sentences and misleading for the other half."""
    half = set(partition(30, 2)[0].tolist())
    misleading = listed(lambda n, rank: rank if n in half else -rank)
    status, ini, err = tune(misleading, "--folds", 2)
    assert status == 0 and "in 2-fold cross-validation" in err
    assert "warning: the new features (New) do not improve the score" in err and b"are kept" not in ini
    status, kept, err = tune(misleading, "--folds", 2, "--fallback")
    assert read_weights(str(write("kept", kept))) == {"Old": (1.0,), "New": (0.0,)}
    assert b"# the initial weights are kept: weights with the new features score lower in cross-validation\n" in kept


def test_tuned_weights_that_are_not_worse_are_written(
    tune: Callable[..., tuple[int, bytes, str]],
) -> None:
    """The new feature is noise, and the list is too short to show a significant loss."""
    rng = np.random.default_rng(2)
    _, ini, err = tune(listed(lambda n, rank: rng.normal()), "--folds", 3, "--fallback")
    assert "in 3-fold cross-validation" in err and b"are kept" not in ini


def test_a_fallback_needs_folds_and_new_features(tune: Callable[..., tuple[int, bytes, str]]) -> None:
    text = listed(lambda n, rank: -rank)
    status, _, err = tune(text, "--folds", 3, "--fallback", initial="Old= 1\nNew= 0")
    assert status == 0 and "no new features to cross-validate" in err
    assert tune(text, "--fallback")[0] == 2
