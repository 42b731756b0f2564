"""PRO, expected metric, and properties of all tuners and metrics."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from moses_io.files.errors import InputError
from moses_io.files.text import MAX_VALUE
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import Metric
from rerank.tuners import expected, pro
from rerank.tuners.problem import MAX_SETTING, Problem, Tuned
from rerank.tuners.table import RENAMED, TUNERS, run
from rerank.tuning.tune import make_tuning, setting_names

Make = Callable[..., Problem]
QUICK: dict[str, dict[str, int]] = {
    "kbmira": {"iterations": 5},
    "mert": {"restarts": 1},
    "pro": {},
    "expected": {"max_iterations": 20},
    "mean": {"climbs": 1},
    "auto": {"climbs": 1},
}
TEXTS = ["the cat sat on the mat .", "a cat sat on a mat .", "cat mat the on", "the the the ."]
REFERENCES = ["the cat sat on the mat .", "there was a cat on the mat ."]


def textual(metric: str, sparse: bool = False) -> Problem:
    """Return six sentences with four candidates. The last of the three dense features correlates with quality."""
    counted = Metric(metric)
    count = counted.counter(REFERENCES)
    statistics = np.array([count(text) for text in TEXTS] * 6)
    rng = np.random.default_rng(3)
    dense = np.c_[rng.normal(size=24), rng.normal(size=24), -np.tile(np.arange(4.0), 6) + 0.1 * rng.normal(size=24)]
    size = 1 if sparse else 0
    values = Sparse(np.arange(25) * size, np.zeros(24 * size, dtype=np.int64), rng.normal(size=24 * size))
    space = FeatureSpace((("A", 2), ("B", 1)), ("s_x",) * size)
    candidates = Candidates(space, np.arange(6), np.arange(0, 25, 4), dense, values)
    return Problem(candidates, statistics, counted.formula, np.array([0.5, -0.5, 0.0] + [0.3] * size))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf3", "chrf++", "ter", "bleu+chrf:0.7,0.3"])
@pytest.mark.parametrize("tuner", TUNERS)
def test_every_tuner_improves_every_metric(tuner: str, metric: str, sparse: bool) -> None:
    problem = textual(metric, sparse)
    tuned = run(problem, make_tuning({"tuner": tuner, "metric": metric} | QUICK[tuner]))
    assert tuned.metric > problem.measure(problem.initial)
    assert tuned.metric == pytest.approx(problem.measure(tuned.weights))
    assert np.abs(tuned.weights[:3]).sum() == pytest.approx(1)
    assert tuned.weights[2] > 0


@pytest.mark.parametrize("tuner", TUNERS)
def test_tuners_give_finite_weights_for_degenerate_problems(make_problem: Make, tuner: str) -> None:
    tuning = make_tuning({"tuner": tuner} | QUICK[tuner])
    equal = make_problem(5)
    equal.candidates.dense[:, 1] = equal.candidates.dense[:, 0]
    constant = make_problem(6)
    constant.candidates.dense[:, 2] = 1
    for problem in (equal, constant, make_problem(7, sentences=1)):
        tuned = run(problem, tuning)
        assert np.isfinite(tuned.weights).all()
        assert tuned.metric >= problem.measure(problem.initial) or tuner == "pro"


def test_identical_candidates_keep_the_initial_weights(make_problem: Make) -> None:
    problem = make_problem(8)
    problem.statistics[:], problem.candidates.dense[:] = problem.statistics[0], 1.0
    for tuner in TUNERS:
        tuned = run(problem, make_tuning({"tuner": tuner} | QUICK[tuner]))
        np.testing.assert_allclose(tuned.weights, problem.initial, atol=1e-9)


def test_pro_needs_candidates_that_differ_in_the_metric(make_problem: Make) -> None:
    problem = make_problem(8)
    problem.statistics[:] = problem.statistics[0]
    with pytest.raises(InputError, match=r"no two candidates of a sentence differ by 0.05 in the metric"):
        run(problem, make_tuning({"tuner": "pro"}))


def test_pro_learns_from_the_pairs_with_the_largest_difference(make_problem: Make) -> None:
    problem = make_problem(1, sentences=1, candidates=3)
    values = problem.formula.smoothed(problem.statistics)
    problem = replace(problem, initial=np.zeros(3))
    tuned = pro.tune(problem, pro.ProSettings(pairs=2000, max_pairs=1))
    best, worst = int(np.argmax(values)), int(np.argmin(values))
    difference = problem.candidates.dense[best] - problem.candidates.dense[worst]
    classifier = LogisticRegression(fit_intercept=False, max_iter=1000)
    wanted = classifier.fit([difference, -difference], [1, 0]).coef_[0]
    np.testing.assert_allclose(tuned.weights, wanted, atol=1e-4)


def test_the_gradient_of_the_expected_metric(make_problem: Make) -> None:
    for problem in (make_problem(2), textual("chrf", sparse=True), textual("ter")):
        weights = np.random.default_rng(1).normal(size=len(problem.initial))
        value, gradient = expected.loss(problem, weights, 0.1, 0.01)
        for column in range(len(weights)):
            step = np.zeros_like(weights)
            step[column] = 1e-6
            ahead, behind = (expected.loss(problem, weights + sign * step, 0.1, 0.01)[0] for sign in (1, -1))
            assert gradient[column] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)
        assert np.isfinite(value)


def test_the_expected_metric_of_large_weights_is_the_metric(make_problem: Make) -> None:
    problem = replace(make_problem(3), initial=np.zeros(3))
    weights = np.array([300.0, 20.0, 10.0])
    assert -expected.loss(problem, weights, 0, 0)[0] == pytest.approx(problem.measure(weights), abs=1e-6)


def test_the_expected_metric_improves_without_any_common_4_gram() -> None:
    """BLEU is 0 for all weights, but chrF is not."""
    problem, counted = textual("bleu+chrf"), Metric("bleu+chrf")
    count = counted.counter(["the cat sat"])
    short = replace(problem, statistics=np.array([count(text) for text in ("the cat sat", "the cat", "a", "b")] * 6))
    assert np.isfinite(expected.loss(short, short.initial, 0.1, 0)[1]).all()
    tuned = run(short, make_tuning({"tuner": "expected", "metric": "bleu+chrf"} | QUICK["expected"]))
    assert tuned.metric > short.measure(short.initial) + 0.1


def test_several_runs_are_averaged(make_problem: Make) -> None:
    problem = make_problem(9)
    few = {"tuner": "kbmira", "iterations": 3}
    apart = [run(problem, make_tuning({**few, "seed": seed, "runs": 1})) for seed in (5, 6, 7)]
    together = run(problem, make_tuning({**few, "seed": 5, "runs": 3}))
    mean = np.mean([tuned.weights for tuned in apart], axis=0)
    np.testing.assert_allclose(together.weights, mean / np.abs(mean).sum(), atol=1e-12)
    assert together.runs == tuple(tuned.metric for tuned in apart)


@pytest.mark.parametrize("tuner", TUNERS)
def test_extreme_values_give_finite_weights(tuner: str) -> None:
    """No overflow warning is raised."""
    rng = np.random.default_rng(1)
    problem = textual("bleu", sparse=True)
    sizes = np.array([MAX_VALUE, -MAX_VALUE, 1e20, 1.0, 0.0, 1e-45, 1e-160, 5e-324])
    for ridge in (1e-3, float(MAX_SETTING)):
        tuning = make_tuning(
            {"tuner": tuner, "runs": 1} | ({} if tuner in ("mean", "auto") else {"ridge": ridge}) | QUICK[tuner]
        )
        for _ in range(10):
            dense = rng.choice(sizes, problem.candidates.dense.shape)
            sparse = problem.candidates.sparse._replace(values=rng.choice(sizes, len(dense)))
            candidates = replace(problem.candidates, dense=dense, sparse=sparse)
            tuned = run(replace(problem, candidates=candidates, initial=rng.choice(sizes, 4)), tuning)
            assert np.isfinite(tuned.weights).all() and np.isfinite(tuned.metric)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tuner": "mirt"}, "unknown tuner 'mirt'. Did you mean 'mert'"),
        ({"tuner": "mert", "iterations": 3}, "unknown key .iterations."),
        ({"tuner": "expected", "seed": 2}, "unknown key .seed."),
        ({"runs": 0}, "runs: expected a whole number from 1, found 0"),
        ({"parity": "joshua"}, "parity: expected 'moses'"),
        ({"parity": "moses", "metric": "ter"}, "parity: expected the tuner kbmira, the metric bleu, one run"),
        ({"tuner": "pro", "ridge": 0}, "ridge: expected a number above 0"),
        ({"tuner": "kbmira", "ridge": -1}, "ridge: expected a number from 0, found -1"),
        *(
            ({"tuner": tuner, "ridge": value}, f"ridge: expected a number (from|above) 0.*, found {value}")
            for tuner in ("kbmira", "mert", "pro", "expected")
            for value in (float("inf"), float("nan"), True)
        ),
        ({"tuner": "kbmira", "C": 10**400}, "C: expected a number above 0 and at most 1e.18, found 1000"),
        (
            {"tuner": "kbmira", "iterations": 10**400},
            "iterations: expected a whole number from 1 and at most 1e.06, found 1000",
        ),
        ({"runs": 10**12}, "runs: expected a whole number from 1 and at most 1e.06, found 1000000000000"),
        ({"tuner": "mert", "directions": 10**12}, "directions: expected a whole number from 0 and at most 1e.06"),
        ({"seed": 10**19}, "seed: expected a whole number from 0 and at most 1e.18"),
        ({"tuner": "kbmira", "decay": float("nan")}, "decay: expected a number above 0, found nan"),
        ({"tuner": "expected", "entropies": [0.1, float("inf")]}, "entropies: expected a number from 0"),
        ({"tuner": "expected", "entropies": []}, "entropies: expected a list of numbers"),
    ],
)
def test_wrong_settings_are_errors(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_tuning(values)
    assert make_tuning({}) == make_tuning({"tuner": "mean", "metric": "bleu", "runs": 1, "climbs": 5})


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_setting_is_an_error_that_names_the_new_setting(old: str, new: str) -> None:
    (tuner,) = [name for name, kind in TUNERS.items() if new in setting_names(kind)]
    with pytest.raises(InputError, match=f"^unknown key '{old}'. It is now {new}$"):
        make_tuning({"tuner": tuner, old: 1})


def test_matrix_products_of_tuners_use_one_thread(make_problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def tune(problem: Problem, settings: object) -> Tuned:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return Tuned(problem.initial, 0.0)

    monkeypatch.setitem(TUNERS, "expected", replace(TUNERS["expected"], tune=tune))
    with threadpool_limits(2, "blas"):
        run(make_problem(1), make_tuning({"tuner": "expected"}))
    assert set(seen) == {1}
