import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from features.feature import Resources
from features.kinds.moses import Rest
from moses_io.nbest import read_hypotheses
from moses_io.weights import read_weight_file, read_weights, weighted
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import match_initial_weights

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

INI = "[weight]\nL= 0.5\nT= 0.1 0.2\nUnknownWordPenalty0= 1\n"
SPARSE = "[weight-file]\nsparse\n"
LIST = """\
0 ||| the house ||| L= -2 T= 1 2 ||| -100.5
0 ||| the old house is red . ||| L= -2 T= 1 2 ||| -0.4996
"""


def scored(command: Command, write: Write, label: str = "Rest=rest") -> tuple[int, bytes, str]:
    arguments = ("--source", write("src", "x\n"), "--feature", f"{label}:{write('moses.ini', INI)}")
    return command("score", write("list", LIST), *arguments)


def test_rest_is_the_difference_between_total_and_weighted_features(command: Command, write: Write) -> None:
    """The weighted features sum to -1 + 0.1 + 0.4 = -0.5.

    The first total leaves a rest of -100. The difference of 0.0004 in the second total is a rounding error.
    """
    lines = scored(command, write)[1].decode().split("\n")
    assert " Rest= -100 " in lines[0] and " Rest= 0 " in lines[1]


def test_features_without_a_weight_do_not_change_rest(command: Command, write: Write) -> None:
    feature = f"Rest=rest:{write('moses.ini', INI)}"
    nbest = write("list", LIST.replace("T= 1 2", "T= 1 2 X= 50 -7 s_x= 9"))
    status, out, _ = command("score", nbest, "--source", write("src", "x\n"), "--feature", feature)
    first, second, _ = out.decode().split("\n")
    assert (status, " Rest= -100 " in first, " Rest= 0 " in second) == (0, True, True)


@pytest.mark.parametrize(
    ("lines", "feature", "total"),
    [
        ("[feature]\nPhrasePenalty name=X\n[weight]\nL= 0.5\n", "X= 2", "0"),  # without a weight, Moses uses 1
        ("[weight]\nL= 0.5\nUnknownWordPenalty0= 1\n", "UnknownWordPenalty0= -100", "-102"),
    ],
)
def test_rest_and_initial_weights_restore_the_total(
    command: Command, write: Write, lines: str, feature: str, total: str
) -> None:
    """Both use the weights with which Moses decoded.

    This includes features whose weights are missing in the file or are not tuneable.
    """
    ini, nbest = write("moses.ini", lines), write("list", f"0 ||| a ||| L= -4 {feature} ||| {total}\n")
    scored = command("score", nbest, "--source", write("src", "x\n"), "--feature", f"Rest=rest:{ini}")[1]
    (line,) = read_hypotheses(str(write("scored", scored)))
    space = FeatureSpace(tuple((name, len(values)) for name, values in line.dense))
    weights = match_initial_weights(read_weight_file(str(ini)), space)
    assert sum(weighted(line, weights).values()) == float(total)


def test_tuners_keep_the_weight_of_rest_at_1(command: Command, write: Write) -> None:
    nbest = write("scored", scored(command, write)[1].replace(b"L= -2 ", b"L= -7 ", 1))
    initial, reference = write("moses.ini", INI), write("ref", "the old house is red .\n")
    for tuner in ("kbmira", "mert", "expected"):
        status, ini, err = command(
            "tune", nbest, "--reference", reference, "--initial-weights", initial, "--tuner", tuner
        )
        assert status == 0, err
        assert read_weights(str(write("ini", ini)))["Rest"] == (1.0,)


def test_sparse_weights_of_the_file_in_the_ini_are_used(command: Command, write: Write) -> None:
    """Sparse weights are part of the total. A file with other content gives another signature."""
    nbest = write("list", LIST.replace("T= 1 2", "T= 1 2 s_x= 3"))
    options = ("--source", write("src", "x\n"), "--feature", f"Rest=rest:{write('sparse.ini', INI + SPARSE)}")
    signatures = set()
    for weight, rest in ((2, b" Rest= -106 "), (4, b" Rest= -112 ")):
        write("sparse", f"s_x {weight}\n")
        status, out, err = command("score", nbest, *options)
        assert status == 0 and rest in out
        signatures |= set(re.findall(r"Rest = (\S+)", err))
    assert len(signatures) == 2


def test_weights_for_other_features_are_an_error(command: Command, write: Write) -> None:
    feature = f"Rest=rest:{write('other.ini', '[weight]' + chr(10) + 'X= 1' + chr(10))}"
    status, _, err = command("score", write("list", LIST), "--source", write("src", "x\n"), "--feature", feature)
    assert status == 2 and "list:1: feature 'rest': no feature of the list has a weight in " in err


@pytest.mark.parametrize(
    ("label", "message"),
    [("Other=rest", "rest needs the label Rest"), ("Rest=length", "reserved for the feature rest")],
)
def test_other_labels_for_rest_are_errors(command: Command, write: Write, label: str, message: str) -> None:
    status, _, err = scored(command, write, label)
    assert status == 2 and message in err


def test_two_different_sparse_weight_files_give_a_warning(
    warned: Callable[[str], AbstractContextManager[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "ini").write_text("[weight-file]\nsparse\n[weight]\nL= 1\n")
    for folder, value in ((tmp_path, 1), (tmp_path / "other", 2)):
        (folder / "sparse").write_text(f"s_a {value}\n")
    monkeypatch.chdir(tmp_path / "other")
    with warned("weights are read from sparse, as Moses does, and not from"):
        Rest(str(tmp_path / "ini"), Resources())
