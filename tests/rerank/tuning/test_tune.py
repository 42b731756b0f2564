import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.filters import Filters
from moses_io.weights import read_weights
from rerank.tuning.folds import CrossValidation, fold_weights
from rerank.tuning.tune import FoldSettings, make_tuning, tune
from rerank.tuning.tuning_set import Lists, read_problem

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

REFERENCE = "the old house is red .\n"


def test_an_unlabelled_list_is_tuned_as_one_feature(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the house ||| 1 -9 ||| 0\n0 ||| the old house is red . ||| 1 -1 ||| 0\n")
    initial = write("initial", "[weight]\nUnlabelled= 0.5 0\n")
    status, ini, _ = command("tune", nbest, "--reference", write("ref", REFERENCE), "--initial-weights", initial)
    assert status == 0
    weights = read_weights(str(write("weights.ini", ini)))
    assert weights["Unlabelled"][1] > 0
    assert command("rerank", nbest, "--weights", write("w", ini))[1].decode() == REFERENCE


def test_sparse_features_are_tuned_and_used(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the house ||| L= 1 p_x= 1 ||| 0\n0 ||| the old house is red . ||| L= 1 p_y= 1 ||| 0\n")
    status, ini, _ = command(
        "tune", nbest, "--reference", write("ref", REFERENCE), "--initial-weights", write("initial", "[weight]\nL= 1\n")
    )
    weights = read_weights(str(write("weights.ini", ini)))
    assert status == 0
    assert weights["p_y"][0] > 0 > weights["p_x"][0]
    assert command("rerank", nbest, "--weights", write("w", ini))[1].decode() == REFERENCE


def test_several_references(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| the old house is red . ||| L= 1 ||| 0\n0 ||| a red one , old ||| L= 2 ||| 0\n")
    first, second = write("first", REFERENCE), write("second", "a red one , old\n")
    initial = write("initial", "[weight]\nL= 1\n")
    err = command("tune", nbest, "--reference", first, "--reference", second, "--initial-weights", initial)[2]
    assert "100.00 -> 100.00" in err
    assert "|references:2|" in err


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("[weight]\nM= 1\n", "no feature of the list has a weight here. The list has L"),
        ("[weight]\nL= 1 2\n", "feature 'L' has 1 value in the list and 2 weights"),
    ],
)
def test_initial_weights_that_do_not_match_the_list_are_errors(
    command: Command, write: Write, weights: str, message: str
) -> None:
    nbest, reference = write("list", "0 ||| the ||| L= 1 ||| 0\n"), write("ref", REFERENCE)
    status, _, err = command("tune", nbest, "--reference", reference, "--initial-weights", write("initial", weights))
    assert status == 2
    assert message in err


TWO = """\
0 ||| the house is ||| Good= -5 Bad= 3 ||| 0
0 ||| the old house is red . ||| Good= -1 Bad= -3 ||| 0
1 ||| a cat ||| Good= -7 Bad= 4 ||| 0
1 ||| a small cat sat here . ||| Good= -1 Bad= 0 ||| 0
"""
TWO_REFERENCES = "the old house is red .\na small cat sat here .\n"


def tuned(command: Command, write: Write, *more: object) -> tuple[dict[str, tuple[float, ...]], str]:
    initial = write("initial", "[weight]\nGood= 0.1\nBad= 0.3\n")
    arguments = (write("list", TWO), "--reference", write("ref", TWO_REFERENCES), "--initial-weights", initial, *more)
    status, ini, err = command("tune", *arguments)
    assert status == 0, err
    return read_weights(str(write("ini", ini))), err


@pytest.mark.parametrize("tuner", ["kbmira", "mert", "pro", "expected"])
def test_signs_and_frozen_weights(command: Command, write: Write, tuner: str) -> None:
    free, err = tuned(command, write, "--tuner", tuner)
    good, bad = free["Good"][0], free["Bad"][0]
    assert 4 * good > 6 * bad and 6 * good > 4 * bad  # the references have the highest scores in both sentences
    assert " -> 100.00 (2 sentences, 4 candidates)" in err
    if tuner in ("pro", "expected"):  # the others stop at the first weights that choose both references
        assert bad < 0
    signed, err = tuned(command, write, "--tuner", tuner, "--sign", "Bad:+", "--sign", "Good:+")
    assert signed["Bad"][0] >= 0 and "|sign:Bad:+,Good:+" in err
    frozen, err = tuned(command, write, "--tuner", tuner, "--freeze", "Bad")
    assert frozen["Bad"] == (0.3,) and "|freeze:Bad" in err
    assert 4 * frozen["Good"][0] > 6 * 0.3 and " -> 100.00 (2 sentences, 4 candidates)" in err


@pytest.mark.parametrize("tuner", ["kbmira", "mert", "pro", "expected", "mean"])
def test_references_without_any_match_are_an_error(command: Command, write: Write, tuner: str) -> None:
    """Moses' kbmira writes no file, its mert writes weights that are all 0."""
    initial, reference = write("initial", "[weight]\nGood= 0.1\nBad= 0.3\n"), write("ref", "x\ny\n")
    status, _, err = command(
        "tune", write("list", TWO), "--reference", reference, "--initial-weights", initial, "--tuner", tuner
    )
    assert (status, "BLEU on the tuning set is 0 for all weights" in err) == (2, True)


def test_wrong_sign_and_freeze_options_are_errors(command: Command, write: Write) -> None:
    for arguments, message in [
        (("--sign", "Goood:+"), "the list has no feature 'Goood'. Did you mean 'Good'"),
        (("--sign", "Good"), "sign 'Good': expected NAME:+ or NAME:-"),
        (("--freeze", "x"), "the list has no feature 'x'"),
    ]:
        initial = write("initial", "[weight]\nGood= 0.1\nBad= 0.3\n")
        given = (
            write("list", TWO),
            "--reference",
            write("ref", TWO_REFERENCES),
            "--initial-weights",
            initial,
            *arguments,
        )
        status, _, err = command("tune", *given)
        assert status == 2 and message in err


@pytest.mark.parametrize("tuner", ["kbmira", "mert", "pro", "expected"])
def test_the_order_of_lines_does_not_matter(command: Command, write: Write, tuner: str) -> None:
    """This holds for the order of sentences and for the order of candidates with different scores."""
    lines = TWO.split("\n")[:-1]
    initial = write("initial", "[weight]\nGood= 0.1\nBad= 0.3\n")
    found = []
    for order in ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1)):
        nbest = write("list", "\n".join(lines[index] for index in order) + "\n")
        found.append(
            command(
                "tune",
                nbest,
                "--reference",
                write("ref", TWO_REFERENCES),
                "--initial-weights",
                initial,
                "--tuner",
                tuner,
            )
        )
    weights = [read_weights(str(write("ini", ini))) for _, ini, _ in found]
    for other in weights[1:]:
        assert other["Good"] == pytest.approx(weights[0]["Good"], abs=1e-6)


def test_lists_of_several_decoder_runs_are_pooled(command: Command, write: Write) -> None:
    first, second = write("run1", TWO), write("run2", TWO + "1 ||| a small cat ||| Good= -2 Bad= 1 ||| 0\n")
    initial, reference = write("initial", "[weight]\nGood= 0.1\nBad= 0.3\n"), write("ref", TWO_REFERENCES)
    err = command("tune", first, second, "--reference", reference, "--initial-weights", initial)[2]
    assert "(2 sentences, 5 candidates)" in err


def test_the_ablation_reports_each_feature(command: Command, write: Write) -> None:
    nbest = "".join(f"{2 * n + int(line[0])}{line[1:]}\n" for n in range(5) for line in TWO.split("\n")[:-1])
    initial = write("initial", "[weight]\nGood= 0.3\nBad= 0.1\n")
    arguments = (write("list", nbest), "--reference", write("ref", TWO_REFERENCES * 5), "--initial-weights", initial)
    status, _, err = command("tune", *arguments, "--ablate", "--sign", "Bad:+")
    assert status == 0
    assert "BLEU in 5-fold cross-validation: 100.00 with all features" in err
    assert "  without Good: " in err and "  without Bad: 100.00 (+0.00, p 1.0000)" in err
    assert err.index("without Good") < err.index("without Bad")
    alone = (write("list", TWO), "--reference", write("ref", TWO_REFERENCES), *arguments[-2:])
    status, ini, err = command("tune", *alone, "--ablate")
    assert status == 0 and b"Good= " in ini and "in 2-fold cross-validation: " in err


@pytest.mark.parametrize("asked", [("--folds", "5"), ("--ablate",)])
def test_cross_validation_of_one_sentence_is_an_error(command: Command, write: Write, asked: tuple[str, ...]) -> None:
    one, initial = "".join(TWO.splitlines(keepends=True)[:2]), write("initial", "[weight]\nGood= 0.1\n")
    arguments = (write("list", one), "--reference", write("ref", REFERENCE), "--initial-weights", initial, *asked)
    status, ini, err = command("tune", *arguments)
    assert (status, ini) == (2, b"") and "folds: expected a list of 2 sentences or more, found 1" in err


def test_tune_for_ter_with_negative_scores(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a b c d ||| L= 2 ||| 0\n0 ||| x y ||| L= 1 ||| 0\n")
    initial, reference = write("initial", "[weight]\nL= 1\n"), write("ref", "p q\n")
    status, _, err = command(
        "tune", nbest, "--reference", reference, "--initial-weights", initial, "--metric", "ter", "--tuner", "kbmira"
    )
    assert status == 0 and "1-TER on the tuning set -100.00 -> 0.00" in err


def test_the_signature_of_auto_has_the_actual_number_of_folds(command: Command, write: Write) -> None:
    three = TWO + "2 ||| the old house ||| Good= -4 Bad= 0 ||| 0\n2 ||| a cat sat here . ||| Good= -1 Bad= 1 ||| 0\n"
    reference = write("ref", TWO_REFERENCES + "a cat sat here .\n")
    initial = write("initial", "[weight]\nGood= 0.1\n")
    arguments = (write("list", three), "--reference", reference, "--initial-weights", initial, "--tuner", "auto")
    status, ini, err = command("tune", *arguments)
    assert status == 0 and "in 3-fold cross-validation" in err and b"|folds:3|" in ini


def test_initial_weights_may_come_from_stdin(command: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"[weight]\nGood= 0.1\nBad= 0.3\n")))
    monkeypatch.setattr(sys, "stdin", content)
    arguments = (write("list", TWO), "--reference", write("ref", TWO_REFERENCES), "--initial-weights", "-")
    status, ini, err = command("tune", *arguments)
    assert status == 0 and b"Good= " in ini, err


@pytest.mark.usefixtures("progress")
def test_relative_weights_of_features(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are scaled by the spread within sentences. Constant features are omitted. Initial weights have no folds."""
    rng = np.random.default_rng(2)
    texts = ["the old house is red .", "the house is red .", "a red old house .", "old the red is house ."]
    lines = [
        f"{n} ||| {text} ||| Old= {-index} {1000 * n} New= {rng.normal():.3f} {100 * rng.normal():.3f} ||| 0\n"
        for n in range(30)
        for index, text in enumerate(texts)
    ]
    nbest, reference = str(write("list", "".join(lines))), str(write("ref", REFERENCE * 30))
    initial, output = str(write("initial", "[weight]\nOld= 1 1\n")), str(write("ini", ""))
    tuning = make_tuning({"tuner": "kbmira", "iterations": 5})
    lists = Lists(nbest=[nbest], references=[reference], filters=Filters(""))
    gain = tune(lists, initial, tuning, output, FoldSettings(folds=3))
    assert [each.name for each in gain.relative_weights] == ["Old.0", "New.0", "New.1"]
    problem, weights = read_problem(lists, initial, tuning)[0], read_weights(output)
    products = np.array([*weights["Old"], *weights["New"]]) * problem.spread()
    assert [each.value for each in gain.relative_weights] == pytest.approx(products[[0, 2, 3]] / np.abs(products).sum())
    for fold, (_, vector) in enumerate(fold_weights(problem, tuning, 3)):
        products = vector * problem.spread()
        relative_weights = [each.folds[fold] for each in gain.relative_weights]
        assert relative_weights == pytest.approx(products[[0, 2, 3]] / np.abs(products).sum())
    monkeypatch.setattr(CrossValidation, "keeps_initial", True)
    kept = tune(lists, initial, tuning, output, FoldSettings(folds=3, fallback=True))
    assert [(each.value, each.folds) for each in kept.relative_weights] == [(1, ()), (0, ()), (0, ())]


def test_sparse_weights_without_a_feature_in_the_list_are_kept(command: Command, write: Write) -> None:
    """They may occur in other lists. They are scaled by the same factor as the dense weights."""
    write("sparse", "wt_a 1\nwt_c 5\nwt_z 0\n")
    initial = write("ini", "[weight-file]\nsparse\n[weight]\nGood= 0.1\nBad= 0.3\n")
    status, ini, _ = command(
        "tune", write("list", TWO), "--reference", write("ref", TWO_REFERENCES), "--initial-weights", initial
    )
    weights = read_weights(str(write("w", ini)))
    scale = sum(abs(weights[name][0]) for name in ("Good", "Bad")) / 0.4
    assert status == 0 and "wt_z" not in weights
    assert weights["wt_c"][0] == pytest.approx(5 * scale) and weights["wt_a"][0] == pytest.approx(scale)


def test_the_path_of_the_sparse_weight_file_is_recorded(command: Command, write: Write) -> None:
    """The absolute path is recorded, because the ini may have a path relative to another working directory."""
    sparse = write("sparse", "wt_a 1\n")
    initial = write("ini", "[weight-file]\nsparse\n[weight]\nGood= 0.1\nBad= 0.3\n")
    arguments = (write("list", TWO), "--reference", write("ref", TWO_REFERENCES), "--initial-weights", initial)
    status, ini, _ = command("tune", *arguments)
    assert (status, f"# sparse weights: {sparse}\n" in ini.decode()) == (0, True)


def test_weights_of_an_old_ini_for_a_list_of_present_moses_are_an_error(command: Command, write: Write) -> None:
    initial = write("ini", "[weight-l]\n0.5\n[weight-w]\n-1\n")
    arguments = (write("list", TWO), "--reference", write("ref", TWO_REFERENCES), "--initial-weights", initial)
    status, _, err = command("tune", *arguments)
    old = "The ini file is from before 2013, and present Moses uses other names"
    assert (status, f"{old}. Take the weights from `moses -show-weights`\n" in err) == (2, True)


def test_a_dense_feature_that_moses_would_misread_gives_a_warning(command: Command, write: Write) -> None:
    nbest = write("list", TWO.replace("Good=", "Very_Good= 1"))
    arguments = ("--reference", write("ref", TWO_REFERENCES), "--initial-weights", write("ini", "Bad= 0.3\n"))
    err = command("tune", nbest, *arguments)[2]
    read = "Moses' tools read its first value as a sparse feature, and the others as dense values without a name"
    assert f"feature 'Very_Good' has '_' in its name: {read}" in err


def test_tuned_weights_of_extracted_features_with_an_underscore_are_written(command: Command, write: Write) -> None:
    """`A_B_0` is the only value of the dense feature `A_B`, not a sparse feature."""
    features = "FEATURES_TXT_BEGIN_0 0 2 2 A_B_0 L_0 \n-9 -3 \n-1 -4 \nFEATURES_TXT_END_0\n"
    statistics = "SCORES_TXT_BEGIN_0 0 2 9 BLEU \n0 2 0 1 0 0 0 0 6 \n6 6 5 5 4 4 3 3 6 \nSCORES_TXT_END_0\n"
    files = ("--extractor-features", write("f.dat", features), "--extractor-scores", write("s.dat", statistics))
    initial = ("--initial-weights", write("init.opt", "-0.5 0.5\n0 0\n1 1\n"))
    status, ini, err = command("tune", *files, *initial, "--tuner", "kbmira")
    weights = read_weights(str(write("w", ini)))
    assert status == 0, err
    assert 8 * weights["A_B"][0] > weights["L"][0]
