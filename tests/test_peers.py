"""Failures of tools used for reranking Moses lists, each with the correct behaviour.

The tools are `scripts/nbest-rescore` of Moses (train.py, rescore.py, topbest.py) and the readers of n-best lists in its
`mert/` (extractor, sentence-bleu-nbest), run at commit 34452895f.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

REFERENCE = "the old house is red .\na small dog sees the cat .\n"
GOOD, BAD = ("the old house is red .", "a small dog sees the cat ."), ("the house .", "a dog .")


def nbest(feature: str, good: str = "-1", bad: str = "-9") -> str:
    """Return two sentences with the bad candidate first. Only `feature` distinguishes the candidates."""
    return "".join(
        f"{k} ||| {text}  ||| Distortion0= 0 LM0= -2 {feature}= {value} TM0= -1 -2 ||| 0\n"
        for k in range(2)
        for text, value in ((BAD[k], bad), (GOOD[k], good))
    )


@pytest.fixture
def initial(write: Write) -> Path:
    return write("moses.ini", "[weight]\nDistortion0= 0.1\nLM0= 0.2\nTM0= 0.1 0.1\nUnknownWordPenalty0= 1\n")


def tune(command: Command, write: Write, initial: Path, content: str | bytes, *more: object) -> tuple[int, bytes, str]:
    return command(
        "tune", write("list", content), "--reference", write("ref", REFERENCE), "--initial-weights", initial, *more
    )


@pytest.mark.parametrize(("feature", "good", "bad"), [("NMT_fwd", "-1", "-9"), ("NN_x", "-1 -3", "-9 -3")])
def test_a_feature_with_an_underscore_is_tuned_with_a_warning(
    command: Command, write: Write, initial: Path, feature: str, good: str, bad: str
) -> None:
    """train.py gives `NMT_fwd` weight 0, and splits `NN_x= -2 -3`: the second value is added to another feature."""
    content = nbest(feature, good, bad)
    status, ini, err = tune(command, write, initial, content)
    assert status == 0
    assert f"warning: feature '{feature}'" in err
    weights = write("weights.ini", ini)
    line = next(line for line in ini.decode().split("\n") if line.startswith(f"{feature}="))
    assert float(line.split(" ")[1]) > 0
    assert command("rerank", write("list", content), "--weights", weights)[1].decode() == REFERENCE


def test_a_compressed_list_is_read(command: Command, write: Write, initial: Path) -> None:
    """train.py: UnicodeDecodeError."""
    status, ini, _ = tune(command, write, initial, gzip.compress(nbest("NMT").encode()))
    assert (status, b"NMT= " in ini) == (0, True)


def test_a_compressed_reference_is_read(command: Command, write: Write, initial: Path) -> None:
    """extractor reads the compressed bytes as text, without an error."""
    compressed = write("ref.gz", gzip.compress(REFERENCE.encode()))
    status, _, err = command(
        "tune", write("list", nbest("NMT")), "--reference", compressed, "--initial-weights", initial
    )
    assert status == 0
    assert "-> 100.00" in err


def test_an_id_outside_the_references_is_an_error(command: Command, write: Write, initial: Path) -> None:
    """extractor is correct here: "Sentence id (7) not found in reference set"."""
    status, _, err = tune(command, write, initial, nbest("NMT").replace("1 |||", "7 |||"))
    assert status == 2
    assert "list:3: sentence 7 is beyond the reference, which has 2 lines (ids from 0 to 1)" in err


def test_a_missing_second_reference_is_an_error(command: Command, write: Write, initial: Path) -> None:
    """extractor does not report it."""
    status, _, err = tune(command, write, initial, nbest("NMT"), "--reference", "nowhere")
    assert (status, "nowhere: No such file or directory" in err) == (2, True)


def test_a_shorter_second_reference_is_an_error(command: Command, write: Write, initial: Path) -> None:
    """extractor does not report it."""
    status, _, err = tune(command, write, initial, nbest("NMT"), "--reference", write("second", "a b\n"))
    assert (status, "has 1 line" in err) == (2, True)


def test_a_repeated_sentence_gets_no_second_line(command: Command, write: Write) -> None:
    """topbest.py writes one line for each run of an id."""
    content = "0 ||| a ||| L= 1 ||| 0\n1 ||| b ||| L= 1 ||| 0\n0 ||| c ||| L= 2 ||| 0\n"
    nbest, weights = write("list", content), write("w", "[weight]\nL= 1\n")
    status, _, err = command("rerank", nbest, "--weights", weights)
    assert status == 2
    assert "list:3: sentence 0 occurs again after other sentences" in err
    status, regrouped, _ = command("validate", nbest, "--regroup")
    assert command("rerank", write("list", regrouped), "--weights", weights)[1] == b"c\nb\n"


def test_references_are_found_by_id_not_by_position(command: Command, write: Write, initial: Path) -> None:
    """sentence-bleu-nbest uses the next reference whenever the id changes. mert also reads `0|||`."""
    content = nbest("NMT").replace("1 |||", "3|||").replace("0 |||", "1|||")
    reference = write("gaps", "x\n" + REFERENCE.replace("\n", "\nx\n", 1))
    status, _, err = command("tune", write("list", content), "--reference", reference, "--initial-weights", initial)
    assert status == 0
    assert "-> 100.00" in err


def test_a_feature_without_a_weight_is_an_error_with_its_name(command: Command, write: Write) -> None:
    """rescore.py: KeyError."""
    content = "0 ||| a ||| L= 1 New= 2 ||| 0\n"
    status, _, err = command("rerank", write("list", content), "--weights", write("w", "[weight]\nL= 1\n"))
    assert status == 2
    assert "list:1: feature 'New' has no weight in" in err


def test_sparse_features_are_scored(command: Command, write: Write) -> None:
    """rescore.py: KeyError on every sparse feature."""
    content = "0 ||| a ||| L= 1 s_x= 1 s_unheard= 9 ||| 0\n0 ||| b ||| L= 1 s_x= 2 ||| 0\n"
    assert command("rerank", write("list", content), "--weights", write("w", "[weight]\nL= 1\ns_x= 1\n"))[1] == b"b\n"


def test_a_rescored_list_keeps_its_bytes_and_is_sorted(command: Command, write: Write, tmp_path: Path) -> None:
    """rescore.py loses repeated and trailing spaces, and does not sort."""
    lines = [
        "0 ||| a  |||  L= 1.50 ||| -1 ||| 0-0 \n",
        "0 ||| b  |||  L= 3e0 ||| -2 ||| 0-0 \n",
        "0 ||| c ||| L= 3 ||| 9\n",
    ]
    again = tmp_path / "again"
    weights = write("w", "[weight]\nL= 2\n")
    assert command("rerank", write("list", "".join(lines)), "--weights", weights, "--nbest", again)[1] == b"b\n"
    expected = [lines[1].replace("-2", "6"), lines[2].replace("9", "6"), lines[0].replace("-1", "3")]
    assert again.read_text() == "".join(expected)


def test_tuning_starts_from_the_decoder_weights(command: Command, write: Write) -> None:
    """train.py starts from zero. In this test the weights of the decoder are already optimal and are kept."""
    content = nbest("NMT", "0", "0").replace("LM0= -2", "LM0= -9", 1)
    initial = write("initial.ini", "[weight]\nDistortion0= 0\nLM0= 1\nNMT= 0\nTM0= 0 0\n")
    reference = write("ref", REFERENCE.replace(GOOD[1], BAD[1]))
    status, ini, err = command("tune", write("list", content), "--reference", reference, "--initial-weights", initial)
    assert status == 0
    assert "BLEU on the tuning set 0.00" not in err
    assert "\nLM0= 1\n" in ini.decode()
