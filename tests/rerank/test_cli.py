"""What all commands share: standard streams, and outputs that are inputs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

LIST = "0 ||| a ||| L= 1 ||| 0\n1 ||| b ||| L= 2 ||| 0\n"


@pytest.mark.parametrize("closed", ["2>&-", "0<&-", "0<&- 2>&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_streams_that_are_closed_at_the_start(write: Write, tmp_path: Path, closed: str) -> None:
    """What is told goes nowhere, and never into a file or into what is written."""
    write("list", LIST), write("weights", "L= 1\n")
    for output in ("", "--output out"):
        script = f"{sys.executable} -m rerank.cli rerank list --weights weights {output} {closed}"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ran = subprocess.run(script, shell=True, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert ran.returncode == 0
        assert (tmp_path / "list").read_text() == LIST
        if output:
            assert (ran.stdout, (tmp_path / "out").read_bytes()) == (b"", b"a\nb\n")
        elif "1>" not in closed:
            assert ran.stdout == b"a\nb\n"


def test_an_output_is_no_input(command: Command, write: Write, tmp_path: Path) -> None:
    nbest, weights = write("list", LIST), write("m.ini", "[weight]\nL= 1\n")
    reference = write("ref", "a\nb\n")
    (tmp_path / "link").symlink_to(weights)
    (tmp_path / "folder").mkdir()
    for output in (weights, tmp_path / "folder" / ".." / "m.ini", tmp_path / "link", nbest, reference):
        status, _, err = command("tune", nbest, "--reference", reference, "--start", weights, "--output", output)
        assert (status, "the command reads this file and would write over it" in err) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", weights, "--output", "x", "--nbest", nbest)
    assert (status, "the command reads this file" in err) == (2, True)
    assert (weights.read_text(), nbest.read_text()) == ("[weight]\nL= 1\n", LIST)
    out = tmp_path / "folder" / ".." / "out"
    status, _, err = command("rerank", nbest, "--weights", weights, "--output", tmp_path / "out", "--nbest", out)
    assert (status, "--output and --nbest name the same place" in err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "list", "m.ini", "ref"]


def test_numbers_that_are_not_finite(command: Command, write: Write, tmp_path: Path) -> None:
    nbest = write("list", "0 ||| a ||| L= 1e308 ||| 0\n0 ||| b ||| L= 2e307 ||| 0\n")
    status, _, err = command("rerank", nbest, "--weights", write("w", "L= 1e10\n"), "--output", tmp_path / "out")
    assert (status, "list:1: under" in err, "score is not finite" in err) == (2, True, True)
    source = write("source", "x\n")
    status, _, err = command("score", nbest, "--source", source, "--feature", "consensus:bleu,1e400")
    assert (status, "expected a scale from 0, found '1e400'" in err) == (2, True)


def test_memory_that_does_not_suffice(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.commands.presets.run", lambda _: bytearray(2**62))
    assert command("presets") == (2, b"", "moses-rerank presets: out of memory; do less at a time\n")
