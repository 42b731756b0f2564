"""The tuner `auto`: it chooses the mean of tuners unless another method is significantly better on held-out data."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from features.progress import progress_bar
from moses_io.weights import read_weights
from rerank.linear.candidates import Candidates, FeatureSpace, Sparse
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.mean import MEAN, AutoSettings
from rerank.tuners.problem import Problem
from rerank.tuning.auto import INITIAL, LIKELY, Choice, HeldOut, Method, Tunings, choose
from rerank.tuning.folds import partition
from rerank.tuning.gain import ComparedTuner, Gain, RelativeWeight, read_gain, write_gain
from rerank.tuning.tuning_set import TuningSet

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def problem(noise: float, sentences: int = 45, seed: int = 1, initial: tuple[float, float] = (1.0, 0.0)) -> Problem:
    """Return a problem in which `Old` correlates weakly with BLEU, and `New` strongly for a small `noise`."""
    rng = np.random.default_rng(seed)
    size = 10 * sentences
    matches = np.sort(rng.integers(1, 9, (size, 4)), axis=1)[:, ::-1]
    statistics = np.empty((size, BLEU_SIZE))
    statistics[:, 0:-1:2], statistics[:, 1:-1:2], statistics[:, -1] = matches, [10, 9, 8, 7], 10
    quality = matches.sum(axis=1)
    dense = np.c_[quality + 9 * rng.normal(size=size), quality + noise * rng.normal(size=size)]
    nothing = Sparse(np.zeros(size + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    space = FeatureSpace((("Old", 1), ("New", 1)))
    candidates = Candidates(space, np.arange(sentences), np.arange(0, size + 1, 10), dense, nothing)
    return Problem(candidates, statistics, Metric("bleu").formula, np.array(initial))


def tunings(of: Problem, folds: int = 3) -> Tunings:
    with progress_bar("", None) as bar:
        return Tunings(of, AutoSettings(climbs=1), {"New": np.array([1])}, folds, bar)


def chosen(of: Problem, other: TuningSet | None = None) -> Choice:
    return choose(tunings(of), other)


def score(of: Problem, rows: np.ndarray | None) -> float:
    assert rows is not None
    return float(of.formula.score(rows.sum(axis=0)))


def test_a_good_feature_is_kept_with_a_nested_cross_validated_score() -> None:
    good = problem(1.0)
    choice = chosen(good)
    assert choice.method == Method(MEAN) and choice.weights[1] > 0.5
    assert score(good, choice.nested) > score(good, choice.old) + 0.05
    assert {each.name for each in choice.compared} >= {
        MEAN,
        "mert",
        INITIAL,
        "mean without the new features",
        "expected, ridge 0.001",
    }
    scores = [each.score for each in choice.compared]
    assert scores == sorted(scores, reverse=True)
    folds = [tunings(good).weights(choice.method, frozenset([fold])).tolist() for fold in range(3)]
    assert [weights.tolist() for weights in choice.folds] == folds


def test_initial_weights_are_kept_if_tuned_weights_are_worse() -> None:
    """The feature of the initial weights has opposite effects on dev and on the selection list."""
    dev, other = problem(0.5, initial=(0.0, 2.0)), problem(0.5, sentences=40, seed=2)
    dev.candidates.dense[:, 1] *= -1
    choice = chosen(dev, TuningSet(other.candidates, other.statistics))
    assert choice.method == Method(INITIAL) and choice.weights.tolist() == [0, 1] and choice.folds == ()
    assert score(dev, choice.nested) == other.measure(np.array([0.0, 1.0])) == score(dev, choice.old)


def test_initial_weights_are_compared_if_a_feature_is_new() -> None:
    """They are not compared if the feature is known and has a weight of 0."""
    of = problem(1.0)
    assert HeldOut(tunings(of), None).compares_initial
    with progress_bar("", None) as bar:
        known = Tunings(of, AutoSettings(climbs=1), {}, 3, bar)
    assert not HeldOut(known, None).compares_initial
    assert HeldOut(known, TuningSet(of.candidates, of.statistics)).compares_initial


def test_initial_weights_are_not_chosen_without_new_features() -> None:
    """The first feature has opposite effects in two folds, which misleads the tuners."""
    of = problem(6.0, sentences=300, initial=(0.01, 1.0))
    matches = of.statistics[:, :-1:2].sum(axis=1)
    for sign, part in zip((1, -1), partition(300, 3), strict=False):
        rows = of.candidates.rows_of(part)
        of.candidates.dense[rows, 0] = sign * matches[rows]
    with progress_bar("", None) as bar:
        known = Tunings(of, AutoSettings(climbs=1), {}, 3, bar)
        assert HeldOut(known, None).better(Method(INITIAL), Method(MEAN), None, LIKELY)
        assert HeldOut(known, TuningSet(of.candidates, of.statistics)).compares_initial
        choice = choose(known, None)
    assert choice.method == Method(MEAN) and INITIAL not in [each.name for each in choice.compared]


def test_held_out_sentences_do_not_influence_their_weights() -> None:
    """Other statistics in one fold do not change the weights and choices for this fold."""
    first = problem(3.0)
    held = partition(45, 3)[2]
    rows, rng = first.candidates.rows_of(held), np.random.default_rng(5)
    statistics = first.statistics.copy()
    statistics[rows] = rng.permutation(statistics[rows])
    second = replace(first, statistics=statistics)
    for method in (Method(MEAN), Method("kbmira"), Method(MEAN, ("New",))):
        weights = [tunings(each).weights(method, frozenset([2])) for each in (first, second)]
        assert weights[0].tolist() == weights[1].tolist()
        both = [tunings(each).weights(method, frozenset([2, 1])) for each in (first, second)]
        assert both[0].tolist() == both[1].tolist()
        assert method.dropped or both[0].tolist() != weights[0].tolist()  # one weight alone is 1
        seen = [HeldOut(tunings(each), None).rest(method, 2).tolist() for each in (first, second)]
        assert seen[0] == seen[1]


def test_a_held_out_fold_does_not_influence_the_choice_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A strong opposite effect in one fold changes the overall choice, but not the choice for this fold."""
    first, held = problem(6.0), partition(45, 3)[2]
    rows, nested = first.candidates.rows_of(held), HeldOut.nested
    chosen_methods = []
    for sign in (1, -50):
        dense = first.candidates.dense.copy()
        dense[rows, 1] *= sign
        folds: list[Method] = []

        def recorded_nested(
            self: HeldOut, choose_for: Callable[[int], Method], folds: list[Method] = folds
        ) -> np.ndarray:
            folds.append(choose_for(2))
            return nested(self, choose_for)

        with monkeypatch.context() as patched:
            patched.setattr(HeldOut, "nested", recorded_nested)
            whole = chosen(replace(first, candidates=replace(first.candidates, dense=dense))).method
        chosen_methods.append((whole, folds[0]))
    assert chosen_methods[0][1] == chosen_methods[1][1]
    assert chosen_methods[0][0] != chosen_methods[1][0]


def test_nested_statistics_keep_the_order_of_sentences() -> None:
    own, other = problem(1.0), problem(1.0, sentences=7, seed=3)
    elsewhere = TuningSet(other.candidates, other.statistics)
    for unseen, expected in ((None, own), (elsewhere, other)):
        rows = HeldOut(tunings(own), unseen).nested(lambda _: Method(INITIAL))
        assert rows.tolist() == expected.chosen(expected.initial).tolist()


def test_too_few_folds_are_an_error_and_selection_lists_may_be_short(command: Command, write: Write) -> None:
    rng = np.random.default_rng(3)
    initial, reference = write("initial", "[weight]\nOld= 1\n"), write("ref", "the old house is red .\n" * 3)
    long, answers = write("long", lines(rng, 9, 1)), write("answers", "the old house is red .\n" * 9)
    auto = ("--initial-weights", initial, "--tuner", "auto", "--set", "climbs=1")
    for sentences, folds in ((1, 5), (2, 5), (3, 2)):
        few = write(f"few{sentences}", lines(rng, sentences, 1))
        status, _, err = command("tune", few, "--reference", reference, *auto, "--folds", folds)
        found = min(sentences, folds)
        assert status == 2 and f"auto needs at least 3 folds of at least one sentence, found {found}" in err
    two = write("two", lines(rng, 2, 1))
    elsewhere = ("--selection", two, "--selection-reference", reference)
    status, _, err = command("tune", long, "--reference", answers, *auto, *elsewhere)
    assert status == 0 and ", nested: " in err
    unseen = write("unseen", lines(rng, 9, 1))
    elsewhere = ("--selection", unseen, "--selection-reference", answers)
    assert command("tune", two, "--reference", reference, *auto, *elsewhere, "--folds", 5)[0] == 0
    known = write("known", "[weight]\nOld= 1\nNew= 0.5\n")
    status, _, err = command(
        "tune", long, "--reference", answers, "--initial-weights", known, *auto[2:], "--metric", "chrf"
    )
    assert status == 0 and "with the chosen tuner (p " in err


def with_bad(of: Problem, sign: int) -> Problem:
    """Return the problem with a third feature, `Bad`, which grows (sign 1) or falls (sign -1) with BLEU."""
    quality = of.statistics[:, :-1:2].sum(axis=1)
    space = FeatureSpace((("Old", 1), ("New", 1), ("Bad", 1)))
    candidates = replace(of.candidates, space=space, dense=np.c_[of.candidates.dense, sign * quality])
    return replace(of, candidates=candidates, initial=np.append(of.initial, 0.0))


def test_the_best_method_omits_only_the_harmful_feature() -> None:
    """`Bad` is perfect on dev and has the opposite effect on the selection list, where `New` is still good.

    Several methods are better than the mean there, such as the mean without any new feature.
    """
    dev, other = with_bad(problem(1.0), 1), with_bad(problem(1.0, sentences=60, seed=2), -1)
    columns = {"New": np.array([1]), "Bad": np.array([2])}
    with progress_bar("", None) as bar:
        known = Tunings(dev, AutoSettings(climbs=1), columns, 3, bar)
        choice = choose(known, TuningSet(other.candidates, other.statistics))
    names = [each.name for each in choice.compared]
    assert "mean without Bad" in names and "mean without New" not in names
    assert choice.method == Method(MEAN, ("Bad",)) and names[0] == choice.method.name
    assert choice.weights[2] == 0 and choice.weights[1] > 0.5
    by_name = {each.name: each.score for each in choice.compared}
    assert by_name["mean without the new features"] > by_name[MEAN]


def test_a_dropped_feature_with_and_without_tuning_again() -> None:
    known = tunings(problem(1.0))
    assert known.weights(Method(MEAN, ("New",)))[1] == 0 == known.weights(Method(MEAN, ("New",), retuned=False))[1]
    assert (
        known.weights(Method(MEAN, ("New",), retuned=False))[0]
        == known.weights(Method(MEAN))[0]
        != known.weights(Method(MEAN, ("New",)))[0]
    )


def test_the_choice_is_made_on_the_selection_list() -> None:
    """On dev the new feature is good. On the selection list it is misleading, and the initial weights are better."""
    dev, other = problem(0.5), problem(0.5, sentences=40, seed=2)
    other.candidates.dense[:, 1] *= -1
    elsewhere = TuningSet(other.candidates, other.statistics)
    choice = chosen(dev, elsewhere)
    assert chosen(dev).method == Method(MEAN) and choice.method != Method(MEAN)
    assert choice.nested.shape == (40, BLEU_SIZE)
    by_name = {each.name: each.score for each in choice.compared}
    assert by_name[INITIAL] == 100 * other.measure(other.initial)
    # `New` is the only new feature and harmful: without it is one method, with one name.
    assert "mean without the new features" in by_name and "mean without New" not in by_name


def lines(rng: np.random.Generator, sentences: int, sign: int) -> str:
    texts = ["the old house is red .", "the house is red .", "a red old house .", "old the red is house ."]
    return "".join(
        f"{n} ||| {text} ||| Old= {rank + 2 * rng.normal():.3f} New= {-sign * rank + 0.1 * rng.normal():.3f} ||| 0\n"
        for n in range(sentences)
        for rank, text in enumerate(texts)
    )


def test_the_command_prints_the_choice(command: Command, write: Write) -> None:
    rng = np.random.default_rng(2)
    nbest, reference = write("list", lines(rng, 30, 1)), write("ref", "the old house is red .\n" * 30)
    other, answers = write("other", lines(rng, 20, -1)), write("answers", "the old house is red .\n" * 20)
    initial = write("initial", "[weight]\nOld= 1\n")
    arguments = ("tune", nbest, "--reference", reference, "--initial-weights", initial, "--tuner", "auto")
    status, ini, err = command(*arguments)
    assert status == 0 and "chosen: mean\n" in err and "BLEU in 5-fold cross-validation, nested: " in err
    assert b"# chosen: mean\n" in ini and read_weights(str(write("ini", ini)))["New"][0] > 0
    status, ini, err = command(*arguments, "--selection", other, "--selection-reference", answers)
    assert status == 0 and f"BLEU on {other}, nested: " in err and "chosen: mean\n" not in err
    few = write("few", "0 ||| the old house is red . ||| Old= 1 ||| 0\n")
    status, _, err = command(*arguments, "--selection", few, "--selection-reference", reference)
    assert status == 2 and f"{few}: feature 'New' has 0 values here and 1 value in the list to tune on" in err
    more = write("more", "0 ||| the old house is red . ||| Old= 1 New= 1 More= 1 2 ||| 0\n")
    status, _, err = command(*arguments, "--selection", more, "--selection-reference", reference)
    assert status == 2 and f"{more}: feature 'More' has 2 values here and 0 values in the list to tune on" in err
    status, _, err = command(*arguments, "--selection", other)
    assert status == 2 and "--selection and --selection-reference together" in err
    status, _, err = command(*arguments[:-1], "mert", "--selection", other, "--selection-reference", answers)
    assert status == 2 and "selection is only for the tuner auto, not for mert" in err


def test_a_written_gain_is_read_back(tmp_path: Path) -> None:
    tried = (ComparedTuner("mean", 2.25, 1.0), ComparedTuner("mert", 2.0, 0.5))
    gain = Gain(
        "BLEU",
        1.5,
        2.5,
        "in 5-fold cross-validation",
        1.0,
        2.25,
        0.125,
        "mean",
        tried,
        "auto",
        (RelativeWeight("LM0", 0.5, (0.25, 0.75)),),
    )
    write_gain(str(tmp_path / "gain"), gain)
    assert read_gain(str(tmp_path / "gain")) == gain
    assert json.loads((tmp_path / "gain").read_text())["after"] == pytest.approx(2.5)
