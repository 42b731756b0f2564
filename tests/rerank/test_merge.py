"""`moses-rerank merge` and the use of merged lists."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.cli import main

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

ONE, OTHER = (
    "0 ||| a ||| L= 1 ||| 0\n0 ||| b ||| L= 2 ||| -1\n",
    "0 ||| c ||| L= -3 N= 2 ||| 0\n0 ||| a ||| L= 0 N= 1 ||| 0\n",
)


def test_names_of_lists_and_the_printed_counts(command: Command, write: Write) -> None:
    one, other = write("one=1", ONE), write("other", OTHER)
    status, out, err = command("merge", one, f"NMT={other}", "--missing", "-7")
    assert (status, err) == (0, "1 sentence, 3 candidates: 1 only in List1, 1 only in NMT, 1 in both\n")
    assert out.decode() == (
        "0 ||| a ||| L= 1 N= 1 FromList1= 1 FromNMT= 1 ||| 0\n"
        "0 ||| b ||| L= 2 N= -7 FromList1= 1 FromNMT= 0 ||| -1\n"
        "0 ||| c ||| L= -3 N= 2 FromList1= 0 FromNMT= 1 ||| -1\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], "expected two lists or more, found 1"),
        (["a=one", "a=other"], "two lists have the name a"),
        (["List2=one", "other"], "two lists have the name List2"),
        (["a=-", "-"], "two lists cannot both come from stdin"),
        (["one", "nowhere"], "nowhere: No such file or directory"),
        (["one", "NMT=other", "--output", "other"], "other: the command reads this file and would write over it"),
    ],
)
def test_wrong_arguments_are_errors_in_one_line(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(write("one", ONE).parent)
    write("other", OTHER)
    status, out, err = command("merge", *arguments)
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert err.startswith(f"moses-rerank merge: {message}")
    assert Path("other").read_text() == OTHER


def test_an_unknown_value_of_missing_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["merge", "one", "other", "--missing", "median"])
    assert caught.value.code == 2
    assert "expected mean, lowest or a number, found 'median'" in capsys.readouterr().err


def test_a_merged_list_is_tuned_from_moses_weights_and_reranked(command: Command, sample: Path, tmp_path: Path) -> None:
    """The second half of the list has a feature that correlates with the reference, the first half does not."""
    references = (sample / "dev.en").read_text(encoding="utf-8").split("\n")[:40]
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    halves: list[list[str]] = [[], []]
    for number, line in enumerate(gzip.decompress((sample / "dev.nbest.gz").read_bytes()).decode().split("\n")[:-1]):
        fields = line.split(" ||| ")
        if int(fields[0]) < len(references):
            if number % 2:
                fields[2] += f" Knows= {len(set(fields[1].split(' ')) & set(references[int(fields[0])].split(' ')))}"
            halves[number % 2].append(" ||| ".join(fields) + "\n")
    for name, half in zip("ab", halves, strict=True):
        (tmp_path / name).write_text("".join(half), encoding="utf-8")
    nbest, weights, out = tmp_path / "merged.gz", tmp_path / "weights.ini", tmp_path / "out"
    assert command("merge", f"Moses={tmp_path}/a", f"Other={tmp_path}/b", "--output", nbest)[0] == 0
    faster = ("--tuner", "kbmira", "--runs", "1", "--set", "iterations=5")
    start = ("--reference", tmp_path / "ref", "--initial-weights", sample / "moses.ini")
    status, _, err = command("tune", nbest, *start, *faster, "--output", weights)
    assert status == 0 and "start at 0: Knows, FromMoses, FromOther\n" in err
    assert command("rerank", nbest, "--weights", weights, "--sentences", "40", "--output", out)[0] == 0
    texts = {line.split(" ||| ")[1].strip() for half in halves for line in half}
    assert set(out.read_text(encoding="utf-8").split("\n")[:-1]) <= texts
    assert command("validate", nbest, "--weights", weights)[0] == 0
