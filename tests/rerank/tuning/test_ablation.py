"""Ablation tables of problems whose features are known to be good or useless."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from moses_io.files.errors import InputError
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.ablation import (
    BASE,
    EVERY,
    Ablation,
    Column,
    SetScore,
    ablate,
    ablation_lines,
    against,
    read_ablation,
    score_test,
    write_table,
)
from rerank.tuning.tune import make_tuning
from rerank.tuning.tuning_set import TuningSet


def problem(seed: int, sentences: int = 60) -> Problem:
    """Return a problem in which `Old` correlates weakly with the metric, `Good` strongly, and `Chance` not at all."""
    rng, size = np.random.default_rng(seed), 10 * sentences
    matches = np.sort(rng.integers(1, 9, (size, 4)), axis=1)[:, ::-1]
    statistics = np.empty((size, BLEU_SIZE))
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


def test_columns_of_the_ablation_table() -> None:
    new = {"Good": np.array([1]), "Chance": np.array([2])}
    column, weights = ablate(problem(1), make_tuning({"tuner": "kbmira", "iterations": 5}), new, 3)
    test = score_test(in_columns(2), weights, Metric("bleu"))
    names = [BASE, "+ Good", "+ Chance", EVERY, "without Good", "without Chance"]
    assert list(column) == list(test) == list(weights) == names
    for on in (column, test):
        for low, high in ((BASE, "+ Good"), (BASE, EVERY), ("without Good", EVERY)):
            assert on[high].score > on[low].score + 5
        p = on["+ Good"].p_value
        assert p is not None and p < 0.0005
        assert on[BASE].p_value is None
    assert abs(column["without Chance"].score - column[EVERY].score) < 3
    assert [against(name) for name in names] == ["", BASE, BASE, BASE, EVERY, EVERY]


def test_columns_of_test_sets_use_weights_tuned_on_all_of_dev() -> None:
    """On dev itself, these weights reach the score of the tuning, not the cross-validated score."""
    dev = problem(1)
    _, weights = ablate(dev, make_tuning({"tuner": "kbmira", "iterations": 5}), {"Good": np.array([1])}, 3)
    tuned = run(dev, replace(make_tuning({"tuner": "kbmira", "iterations": 5}), runs=1))
    column = score_test(TuningSet(dev.candidates, dev.statistics), weights, Metric("bleu"))
    assert column[EVERY].score == 100 * tuned.metric
    assert weights[BASE]["Good"] == (0.0,)
    assert list(weights) == list(column) == [BASE, "+ Good", EVERY]  # without Good would be the same as the first


DEV = {BASE: SetScore(80.0, None), "+ F": SetScore(81.0, 0.5), EVERY: SetScore(81.0, 0.5)}
NEWS = {BASE: SetScore(70.123, None), "+ F": SetScore(100.0, 0.0001), EVERY: SetScore(100.0, 0.0001)}
HOW = "BLEU, 5 folds, one run each"


def test_one_column_per_set() -> None:
    columns = {"dev": DEV, "news": NEWS, "a-longer-name": NEWS}
    assert ablation_lines(Ablation(HOW, columns)) == [
        "Ablation of features (BLEU, 5 folds, one run each)",
        "features         dev, cross-validated       p    news       p  a-longer-name       p",
        "Moses' features                 80.00           70.12                  70.12",
        "+ F                             81.00  0.5000  100.00  0.0001         100.00  0.0001",
        "all features                    81.00  0.5000  100.00  0.0001         100.00  0.0001",
        "p: against Moses' features, in rows 'without …' against all features",
    ]
    assert ablation_lines(Ablation(HOW, {"dev": DEV}))[1:3] == [
        "features         dev, cross-validated       p",
        "Moses' features                 80.00",
    ]


@pytest.mark.parametrize("score", [80.0, 79.0])
def test_features_without_improvement_are_a_warning(score: float) -> None:
    worse = DEV | {EVERY: SetScore(score, 1.0)}
    warning = ablation_lines(Ablation(HOW, {"dev": worse, "news": NEWS}))[-1]
    assert warning == "warning: the new features do not improve the cross-validated score"


def test_the_ablation_table_as_json(tmp_path: Path) -> None:
    paths = {"dev": str(tmp_path / "dev.json"), "news": str(tmp_path / "news.json")}
    Path(paths["dev"]).write_text(json.dumps({"how": HOW, "weights": {}, "column": plain(DEV)}))
    Path(paths["news"]).write_text(json.dumps({"column": plain(NEWS)}))
    text, rows = tmp_path / "table.txt", tmp_path / "table.json"
    write_table(paths, (str(text), str(rows)))
    assert text.read_text().split("\n") == [*ablation_lines(Ablation(HOW, {"dev": DEV, "news": NEWS})), ""]
    base, one, _ = json.loads(rows.read_text())
    assert base == {
        "name": BASE,
        "against": "",
        "sets": {"dev": {"score": 80.0, "p_value": None}, "news": {"score": 70.123, "p_value": None}},
    }
    assert (one["name"], one["against"], one["sets"]["news"]["p_value"]) == ("+ F", BASE, 0.0001)


@pytest.mark.parametrize("key", ["how", "weights"])
def test_an_incomplete_file_of_dev_is_an_error(key: str, tmp_path: Path) -> None:
    content = {"how": HOW, "weights": {}, "column": plain(DEV)}
    del content[key]
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"damaged or edited, `moses-rerank` cannot read it .*`{key}`"):
        read_ablation({"dev": str(path)})


def plain(column: Column) -> dict[str, dict[str, float | None]]:
    return {name: asdict(reached) for name, reached in column.items()}
