"""Feature arguments in a run: file names with a meaning, and programs that run in a given folder."""

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features.request import parse_requests
from rerank.experiment.file import read_experiment

Command = Callable[..., tuple[int, bytes, str]]
Experiment = Callable[..., Path]

TEST = 'test = { source = "test.de", nbest = "test.nbest" }'
TABLE = "the der 0.8\nder the 0.9\nein a 0.7\n. . 0.6\n"
TWICE = '#!/bin/sh\nawk -F "\\t" \'{print FACTOR * split($2, words, " ")}\'\n'
TIMES = """
import numpy as np


class Times:
    signature = "times"

    def __init__(self, argument, resources):
        pass

    def __call__(self, sentences):
        return np.array([[FACTOR * len(text)] for each in sentences for text in each.hypotheses], float)
"""


def program(path: Path, factor: int) -> Path:
    """Write a program that prints the number of words of each candidate times a factor."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(TWICE.replace("FACTOR", str(factor)))
    path.chmod(0o755)
    return path


def values(work: Path, label: str, name: str = "dev") -> list[float]:
    """Return the values of a feature in a scored list."""
    text = gzip.decompress((work / f"{name}.nbest.gz").read_bytes()).decode()
    return [float(value) for value in re.findall(f" {label}= ([^ ]+)", text)]


def lengths(nbest: Path) -> list[int]:
    """Return the number of words of each candidate in a list."""
    return [len(line.split(" ||| ")[1].split()) for line in nbest.read_text().splitlines()]


def up_to_date(err: str, stage: str) -> bool:
    """Return whether a stage of the run was up to date."""
    (suffix,) = re.findall(rf"^\[\d+/\d+\] {re.escape(stage)}(: up to date)?(?:, .*)?$", err, re.MULTILINE)
    return bool(suffix)


@pytest.mark.parametrize("test", ["", TEST])
def test_a_table_renamed_to_the_other_direction_is_scored_again(
    command: Command, folder: Path, experiment: Experiment, test: str
) -> None:
    (folder / "lex.f2e").write_text(TABLE)
    assert command("run", experiment('Lex = "lexical:lex.f2e"', test))[0] == 0
    forward = values(folder / "work", "Lex")
    (folder / "lex.f2e").rename(folder / "lex.e2f")
    status, _, err = command("run", experiment('Lex = "lexical:lex.e2f"', test))
    assert status == 0
    assert not up_to_date(err, "score dev Lex") and not up_to_date(err, "save the reranker")
    arguments = ("--source", "dev.de", "--feature", "Lex=lexical:lex.e2f", "--output", "scored.gz")
    assert command("score", "dev.nbest", *arguments)[0] == 0
    shutil.move("scored.gz", "clean.nbest.gz")
    assert values(folder / "work", "Lex") == values(folder, "Lex", "clean") != forward


def test_the_reranker_contains_the_renamed_table(command: Command, folder: Path, experiment: Experiment) -> None:
    (folder / "lex.f2e").write_text(TABLE)
    command("run", experiment('Lex = "lexical:lex.f2e"'))
    (folder / "lex.f2e").rename(folder / "lex.e2f")
    command("run", experiment('Lex = "lexical:lex.e2f"'))
    assert [path.name for path in (folder / "work" / "reranker" / "tables").iterdir()] == ["lex.e2f"]


def test_a_moved_table_is_not_scored_again(command: Command, folder: Path, experiment: Experiment) -> None:
    (folder / "lex.f2e").write_text(TABLE)
    command("run", experiment('Lex = "lexical:lex.f2e"'))
    (folder / "e2f").mkdir()
    (folder / "lex.f2e").rename(folder / "e2f" / "other.f2e")
    _, _, err = command("run", experiment('Lex = "lexical:e2f/other.f2e"'))
    assert up_to_date(err, "score dev Lex") and up_to_date(err, "save the reranker")


def test_programs_run_in_the_folder_of_the_experiment_file(
    command: Command, folder: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder / "p.sh", 2)
    program(folder / "sub" / "p.sh", 7)
    path = experiment('P = "command:./p.sh"')
    monkeypatch.chdir("sub")
    assert command("run", path, "--allow-code")[0] == 0
    assert values(folder / "work", "P") == [2 * count for count in lengths(folder / "dev.nbest")]
    monkeypatch.chdir("..")
    assert up_to_date(command("run", path)[2], "score dev P")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("./p.sh", "p.sh"),
        ("sh p.sh", "p.sh"),
        ("cat|./p.sh", "p.sh"),
        ("./p.sh<factors;true", "factors"),
        ("./p.sh --factors=factors", "factors"),
        ("found", "bin/found"),
        ("cat | found", "bin/found"),
        ("<factors found>out", "bin/found"),
        ("FOO=1 BAR= found -x", "bin/found"),
        ("cat|LC_ALL=C found|cat", "bin/found"),
        ("true && (cat; found)", "bin/found"),
        ("cat|found", "bin/found"),
        ("cat > all; found<all", "bin/found"),
        ("cat\\nfound", "bin/found"),
        ("(exit 0) && found", "bin/found"),
        ("</dev/null found", "bin/found"),
        ("FACTOR=2 found", "bin/found"),
    ],
)
def test_files_of_a_command_are_resolved_from_its_folder(
    folder: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, text: str, changed: str
) -> None:
    for name in ("p.sh", "bin/found"):
        program(folder / name, 1)
    (folder / "factors").write_text("3\n")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir("bin")
    (request,) = read_experiment(str(experiment(f'P = "command:{text}"')), allow_code=True).features.values()
    assert str(folder / changed) in map(os.path.normpath, request.files)


@pytest.mark.parametrize("text", ["cat found", "cat | cat found", "<found cat", "found='1 2' cat", "./found"])
def test_other_words_of_a_command_are_not_programs(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program(folder / "bin" / "found", 1)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    assert parse_requests([f"command:{text}"])[0].programs == []


def test_an_argument_with_the_name_of_a_program_is_not_a_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder / "bin" / "found", 1)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (request,) = parse_requests(["command:cat found > found"])
    assert request.programs == [shutil.which("cat")]


def test_a_changed_program_on_the_path_is_run_again(
    command: Command, folder: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder / "bin" / "found", 1)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    path = experiment('P = "command:found"')
    assert command("run", path)[0] == 0
    program(folder / "bin" / "found", 3)
    assert command("run", path)[0] == 0
    assert values(folder / "work", "P") == [3 * count for count in lengths(folder / "dev.nbest")]


@pytest.fixture
def applied(
    command: Command, folder: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[int, bytes, str]]:
    """Apply the reranker of an experiment from a folder that has another program with the same name."""
    program(folder / "p.sh", 2)
    program(folder / "elsewhere" / "p.sh", 7)
    assert command("run", experiment('P = "command:./p.sh"'))[0] == 0
    monkeypatch.chdir("elsewhere")
    reranker, nbest, source = folder / "work" / "reranker", folder / "test.nbest", folder / "test.de"
    return lambda: command("apply", reranker, nbest, "--source", source, "--allow-code", "--nbest", "best")


def test_the_reranker_runs_the_program_of_the_experiment(
    applied: Callable[[], tuple[int, bytes, str]], folder: Path
) -> None:
    status, _, err = applied()
    assert status == 0, err
    text = Path("best").read_text()
    found = [float(value) for value in re.findall(" P= ([^ ]+)", text)]
    assert found == [2 * count for count in lengths(Path("best"))] and len(found) == len(lengths(folder / "test.nbest"))


def manifest_of(reranker: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((reranker / "reranker.json").read_text())
    return values


def test_the_reranker_stores_the_folder_of_the_command(
    applied: Callable[[], tuple[int, bytes, str]], folder: Path
) -> None:
    manifest = manifest_of(folder / "work" / "reranker")
    assert (manifest["features"], manifest["code"]) == ({"P": "command:./p.sh"}, str(folder))


def test_a_missing_code_folder_of_the_reranker_is_an_error(
    applied: Callable[[], tuple[int, bytes, str]], folder: Path
) -> None:
    reranker = folder / "work" / "reranker"
    gone = manifest_of(reranker) | {"code": f"{folder}/gone"}
    (reranker / "reranker.json").write_text(json.dumps(gone))
    status, _, err = applied()
    assert (status, not Path("best").exists()) == (2, True)
    assert err.endswith(
        f"feature 'P': no folder {folder}/gone, in which its program ran. "
        "Give --feature 'P=command:./p.sh', which runs in the working folder\n"
    )


def test_a_command_given_to_apply_runs_in_the_working_directory(
    applied: Callable[[], tuple[int, bytes, str]], command: Command, folder: Path
) -> None:
    """The program in the working directory prints 7 for each word, the program of the experiment prints 2."""
    lists = (folder / "test.nbest", "--source", folder / "test.de")
    again = ("--feature", "P=command:./p.sh", "--nbest", "best")
    assert command("apply", folder / "work" / "reranker", *lists, *again)[0] == 0
    found = [float(value) for value in re.findall(" P= ([^ ]+)", Path("best").read_text())]
    assert found == [7 * count for count in lengths(Path("best"))]


def test_without_a_code_folder_commands_run_in_the_working_directory(
    applied: Callable[[], tuple[int, bytes, str]], folder: Path
) -> None:
    """Older rerankers, whose command itself changes the directory, also work."""
    reranker = folder / "work" / "reranker"
    before = manifest_of(reranker)
    del before["code"]
    for text, factor in (("./p.sh", 7), (f"cd {folder} || exit; ./p.sh", 2)):
        (reranker / "reranker.json").write_text(json.dumps(before | {"features": {"P": f"command:{text}"}}))
        status, _, err = applied()
        assert status == 0, err
        found = [float(value) for value in re.findall(" P= ([^ ]+)", Path("best").read_text())]
        assert found == [factor * count for count in lengths(Path("best"))]


def test_the_reranker_finds_the_module_of_the_experiment(
    command: Command, folder: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    for place, factor in ((folder, 2), (folder / "elsewhere", 7)):
        (place / "times.py").write_text(TIMES.replace("FACTOR", str(factor)))
    assert command("run", experiment('P = "times:Times"'))[0] == 0
    monkeypatch.chdir("elsewhere")
    lists = (folder / "test.nbest", "--source", folder / "test.de")
    status, _, err = command("apply", folder / "work" / "reranker", *lists, "--allow-code", "--nbest", "best")
    assert status == 0, err
    found = [float(value) for value in re.findall(" P= ([^ ]+)", Path("best").read_text())]
    assert found == [2 * count for count in lengths(Path("best"))]


def test_the_reranker_of_a_moved_experiment_is_made_again(
    command: Command, folder: Path, experiment: Experiment, tmp_path: Path
) -> None:
    program(folder / "p.sh", 2)
    path = experiment('P = "command:./p.sh"')
    assert command("run", path)[0] == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for each in [each for each in folder.iterdir() if each != moved]:
        each.rename(moved / each.name)
    status, _, err = command("run", moved / "e.toml")
    assert (status, up_to_date(err, "score dev P"), up_to_date(err, "save the reranker")) == (0, True, False)
    assert manifest_of(moved / "work" / "reranker")["code"] == str(moved)


def test_the_key_code_sets_the_folder_of_programs(command: Command, folder: Path, experiment: Experiment) -> None:
    program(folder / "tools" / "p.sh", 4)
    path = experiment('P = "command:./p.sh"')
    path.write_text('code = "tools"\n' + path.read_text())
    assert command("run", path)[0] == 0
    assert values(folder / "work", "P") == [4 * count for count in lengths(folder / "dev.nbest")]


def test_a_missing_code_folder_is_an_error(command: Command, folder: Path, experiment: Experiment) -> None:
    path = experiment('P = "command:./p.sh"')
    path.write_text('code = "tools"\n' + path.read_text())
    status, _, err = command("run", path)
    assert (status, err) == (2, f"moses-rerank run: {path}: code: no such folder 'tools'\n")


def test_files_in_the_argument_of_a_user_class_are_inputs(tmp_path: Path) -> None:
    """The values of the feature depend on these files and on the module."""
    (tmp_path / "mine.py").write_text(TIMES)
    for name in ("word.txt", "other.txt"):
        (tmp_path / name).write_text("the\n")
    one, two, none = (
        parse_requests([f"mine:Times{argument}"], str(tmp_path))[0].files
        for argument in (":word.txt", ":word.txt,other.txt", "")
    )
    given = {str(tmp_path / name) for name in ("word.txt", "other.txt")}
    assert [given & set(files) for files in (one, two, none)] == [{str(tmp_path / "word.txt")}, given, set()]
