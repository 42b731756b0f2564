import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.linear.missing import Replacements, read_replacements
from rerank.linear.selection import choose_by_total

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def test_the_first_of_equally_good_candidates_is_chosen(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| L= 1\n0 ||| b ||| L= 2\n0 ||| c ||| L= 2\n")
    assert command("rerank", nbest, "--weights", write("w", "L= 1\n"))[1] == b"b\n"


def test_the_text_is_written_unchanged(command: Command, write: Write) -> None:
    nbest = write("list", b"0 |||  caf\xe9\xc2\xa0x  y  ||| L= 1\n1 |||  ||| L= 1\n")
    assert command("rerank", nbest, "--weights", write("w", "L= 1\n"))[1] == b"caf\xe9\xc2\xa0x  y\n\n"


def test_a_list_from_stdin(command: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"0 ||| a ||| L= 1\n")))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", stdin)
    assert command("rerank", "-", "--weights", write("w", "L= 1\n"))[1] == b"a\n"


def test_one_output_line_per_source_sentence(command: Command, write: Write) -> None:
    nbest, weights, source = write("list", "1 ||| b ||| L= 1\n"), write("w", "L= 1\n"), write("s", "x\ny\nz\n")
    status, _, err = command("rerank", nbest, "--weights", weights, "--source", source)
    assert (status, "sentence 0 has no candidates" in err) == (2, True)
    assert command("rerank", nbest, "--weights", weights, "--source", source, "--on-missing", "blank")[1] == b"\nb\n\n"
    assert command("rerank", nbest, "--weights", weights, "--source", source, "--on-missing", source)[1] == b"x\nb\nz\n"
    assert command("rerank", nbest, "--weights", weights, "--on-missing", source)[1] == b"x\nb\nz\n"
    short = write("short", "x\n")
    status, _, err = command("rerank", nbest, "--weights", weights, "--source", source, "--on-missing", short)
    assert (status, "has 1 line, there are 3 source sentences" in err) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", weights, "--sentences", 1, "--on-missing", "blank")
    assert (status, "sentence 1 is beyond the source, which has 1 line" in err) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", weights, "--on-missing", short)
    assert (status, "sentence 1 is beyond the file of --on-missing, which has 1 line" in err) == (2, True)


def test_the_source_is_read_once(command: Command, write: Write) -> None:
    """A pipe can be read only once."""
    files = (write("list", "0 ||| a ||| L= 1 ||| 0\n1 ||| b ||| L= 1 ||| 0\n"), "--weights", write("w", "L= 1\n"))
    output = ("--moses-output", write("out", "a\nb\n"))
    for arguments in (("rerank", *files), ("explain", *files, "--sentence", 1)):
        reader, writer = os.pipe()
        os.write(writer, b"x\ny\n")
        os.close(writer)
        status, _, err = command(*arguments, *output, "--source", f"/dev/fd/{reader}")
        os.close(reader)
        assert status == 0, err


def test_a_gap_does_not_shift_the_output(command: Command, write: Write) -> None:
    """topbest.py of Moses writes two lines for this list."""
    nbest, weights = write("list", "0 ||| a ||| L= 1\n2 ||| c ||| L= 1\n"), write("w", "L= 1\n")
    status, out, err = command("rerank", nbest, "--weights", weights)
    assert (status, out) == (2, b"a\n")
    assert "list:2: sentence 1 has no candidates. --on-missing blank or FILE supplies its line" in err
    filled = ("rerank", nbest, "--weights", weights, "--on-missing")
    assert command(*filled, "blank", "--sentences", 5)[1] == b"a\n\nc\n\n\n"
    assert command(*filled, write("1best", "x\ny\nz\n"))[1] == b"a\ny\nc\n"


def test_a_missing_last_sentence_is_an_error_with_a_source(command: Command, write: Write) -> None:
    nbest, weights = write("list", "0 ||| b ||| L= 1\n"), write("w", "L= 1\n")
    assert command("rerank", nbest, "--weights", weights)[:2] == (0, b"b\n")
    status, _, err = command("rerank", nbest, "--weights", weights, "--sentences", 2)
    ends = f"{nbest}:1: the list ends at sentence 0, expected sentences up to 1. The decoder probably stopped early"
    assert (status, f"{ends}. --on-missing blank or FILE supplies the missing lines\n" in err) == (2, True)


def test_a_list_that_ends_early_differs_from_a_gap(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, weights = b"0 ||| a ||| L= 1\n0 ||| b ||| L= 0\n", write("w", "L= 1\n")
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(lines)))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", stdin)
    status, out, err = command("rerank", "-", "--weights", weights, "--sentences", 3)
    ends = "<stdin>:2: the list ends at sentence 0, expected sentences up to 2. The decoder probably stopped early\n"
    assert (status, out, err.endswith(ends)) == (2, b"a\n", True)
    gap = write("gap", lines.replace(b"1\n", b"1\n3 ||| b ||| L= 1\n", 1)[:-17])
    status, _, err = command("rerank", gap, "--weights", weights, "--sentences", 5)
    assert (status, "gap:2: sentence 1 has no candidates. --on-missing" in err) == (2, True)


def test_decreasing_ids_are_an_error(command: Command, write: Write) -> None:
    nbest = write("list", "1 ||| b ||| L= 1\n0 ||| a ||| L= 1\n")
    status, _, err = command("rerank", nbest, "--weights", write("w", "L= 1\n"), "--on-missing", "blank")
    assert status == 2
    assert "list:2: sentence 0 comes after sentence 1" in err


def test_weights_without_a_feature_in_the_list(command: Command, write: Write) -> None:
    """This is an error, except for sparse features and features that Moses never prints."""
    nbest, weights = write("list", "0 ||| b ||| L= 1\n"), write("w", "L= 1\nUnknownWordPenalty0= 1\np_x= 2\n")
    assert command("rerank", nbest, "--weights", weights)[:2] == (0, b"b\n")
    status, _, err = command("rerank", nbest, "--weights", write("w", "L= 1\nNMT= 2\n"))
    assert status == 2
    assert (
        f"list:1: {weights} has weights for features that are not in the list: NMT. Was the list scored with `score`?"
        in err
    )


def test_the_error_for_a_list_without_labels_explains_the_weights(command: Command, write: Write) -> None:
    nbest, weights = write("list", "0 ||| b ||| 1 2 ||| 0\n"), write("w", "[weight]\nL= 1\nD= 2\n")
    hint = "The list has no labels: write its weights in a line 'Unlabelled= …', in the order of `moses -show-weights`"
    arguments = (nbest, "--reference", write("r", "b\n"), "--initial-weights", weights)
    for status, _, err in (command("rerank", nbest, "--weights", weights), command("tune", *arguments)):
        assert (status, hint in err) == (2, True)


def test_one_warning_if_no_sparse_feature_has_a_weight(command: Command, write: Write) -> None:
    """A name with `_` is a sparse feature. As in Moses, sparse features without a weight have weight 0."""
    nbest = write("list", "0 ||| b ||| L= 1 NMT_fwd= 3 pl_1= 1 pl_2= 1 pl_3= 1\n")
    weights = write("w", "L= 1\n")
    status, _, err = command("rerank", nbest, "--weights", weights)
    weightless = (
        f"warning: {weights} has no weight for any sparse feature. The sparse features of the list have weight 0"
    )
    assert (status, err.count("warning: "), f"{weightless}: 'NMT_fwd', 'pl_1', 'pl_2', …\n" in err) == (0, 1, True)
    assert "warning" not in command("rerank", nbest, "--weights", write("w", "[weight]\nL= 1\npl_9= 2\n"))[2]


def test_two_outputs_to_the_same_file_are_an_error(command: Command, write: Write) -> None:
    nbest, weights = write("list", "0 ||| b ||| L= 1\n"), write("w", "L= 1\n")
    status, out, err = command("rerank", nbest, "--weights", weights, "--nbest", "-")
    assert (status, out) == (2, b"")
    assert "--output and --nbest name the same file or folder" in err


def test_a_feature_without_weights_in_an_ini_has_weight_1(command: Command, write: Write) -> None:
    ini = write("ini", "[feature]\nKENLM name=LM0\nDistortion name=D0\n[weight]\nLM0= 0.5\n")
    nbest = write("list", "0 ||| a ||| LM0= -1 D0= -2\n0 ||| b ||| LM0= -2 D0= -1\n")
    assert command("rerank", nbest, "--weights", ini)[:2] == (0, b"b\n")
    assert "has no weight" not in command("validate", nbest, "--weights", ini)[2]
    explained = command("explain", nbest, "--weights", ini, "--sentence", 0)[1].decode()
    assert "number 1, score -2.5000" in explained


def test_choose_by_the_total_of_the_decoder(tmp_path: Path, write: Write) -> None:
    nbest = write(
        "list", "0 ||| a ||| L= 1 ||| -2\n0 ||| b ||| L= 1 ||| -1\n0 ||| c ||| L= 1 ||| -1\n2 ||| d ||| L= 1\n"
    )
    choose_by_total(str(nbest), Replacements(3, blank=True), str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"b\n\nd\n"
    with pytest.raises(InputError, match="sentence 1 has no candidates"):
        choose_by_total(str(nbest), read_replacements(None, 3, "error"), str(tmp_path / "out"))


def test_a_very_large_id_is_an_error(command: Command, write: Write) -> None:
    nbest, weights = write("list", f"0 ||| a ||| L= 1\n{10**17} ||| b ||| L= 1\n"), write("w", "L= 1\n")
    near, blank = write("near", "0 ||| a ||| L= 1\n"), ("--on-missing", "blank")
    status, out, err = command("rerank", nbest, "--weights", weights, *blank, "--output", write("o", ""))
    many = f"{10**17 - 1:,} sentences in a row, 1 to {10**17 - 1}, have no candidates, expected at most 10,000,000"
    assert (status, f"{nbest}:2: {many}" in err, out) == (2, True, b"")
    status, _, err = command("rerank", near, "--weights", weights, "--sentences", 10**17, *blank)
    assert (status, "near, at its end: 99,999,999,999,999,999 sentences in a row" in err) == (2, True)
    assert command("rerank", near, "--weights", weights, "--sentences", 1001, *blank)[1] == b"a\n" + b"\n" * 1000


def test_new_totals_give_other_tools_the_same_choice(command: Command, sample: Path, tmp_path: Path) -> None:
    """Like topbest.py of Moses, which chooses the first candidate with the highest total."""
    weights = tmp_path / "weights.ini"
    weights.write_text((sample / "moses.ini").read_text().replace("LM0= ", "LM0= -"))
    output, nbest = tmp_path / "out", tmp_path / "nbest"
    command("rerank", sample / "dev.nbest.gz", "--weights", weights, "--output", output, "--nbest", nbest)
    highest: dict[str, tuple[float, str]] = {}
    for line in nbest.read_text().splitlines():
        sentence, text, _, total, *_ = (field.strip(" ") for field in line.split("|||"))
        if sentence not in highest or float(total) > highest[sentence][0]:
            highest[sentence] = (float(total), text)
    assert [text for _, text in highest.values()] == output.read_text().splitlines()
    assert len(highest) == 400


def test_segmentation_marks_are_allowed_in_list_and_moses_output(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a |0-0| ||| L= 1 ||| 1\n0 ||| b |0-0| ||| L= 2 ||| 0\n")
    rerank = ("rerank", nbest, "--weights", write("w", "L= 1\n"), "--moses-output")
    for text, unlisted in (("a |0-0| \n", False), ("c |0-0| \n", True)):
        status, out, err = command(*rerank, write("printed", text))
        assert (status, out) == (0, b"b |0-0|\n")
        assert ("Moses' output is not among the candidates in 1 of 1 sentence\n" in err) == unlisted


def test_the_feature_rest_has_weight_1(command: Command, write: Write) -> None:
    """`Rest` is a part of the Moses total, so it has weight 1 even if the weight file does not list it."""
    nbest = write("list", "0 ||| a ||| L= 1 Rest= -5 ||| -4\n0 ||| b ||| L= 0 Rest= 0 ||| 0\n")
    weights = write("w", "[weight]\nL= 1\n")
    assert command("rerank", nbest, "--weights", weights)[:2] == (0, b"b\n")
    assert command("validate", nbest, "--weights", weights)[1].endswith(b"errors: 0, warnings: 0\n")
    status, out, _ = command("explain", nbest, "--weights", weights, "--sentence", 0)
    assert (status, b"score -4.0000" in out) == (0, True)
