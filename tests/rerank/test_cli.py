"""Behaviour that all commands share: standard streams, checks of arguments, messages and progress bars."""

import argparse
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features import progress
from moses_io.files.errors import InputError
from rerank import cli
from rerank.cli import COMMANDS, main, make_parser
from rerank.commands.arguments import RENAMED, InputPath, OutputPath, check_arguments
from rerank.linear.missing import read_replacements
from rerank.linear.selection import choose_by_total

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

LIST = "0 ||| a ||| L= 1 ||| 0\n1 ||| b ||| L= 2 ||| 0\n"


@pytest.mark.parametrize("closed", ["2>&-", "0<&-", "0<&- 2>&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams(write: Write, tmp_path: Path, closed: str) -> None:
    """Messages are lost if stderr is closed. They are never written into a data file."""
    write("list", LIST), write("weights", "L= 1\n")
    for output in ("", "--output out"):
        script = f"{sys.executable} -m rerank.cli rerank list --weights weights {output} {closed}"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ran = subprocess.run(script, shell=True, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert (tmp_path / "list").read_text() == LIST
        if output:
            assert (ran.returncode, ran.stdout, (tmp_path / "out").read_bytes()) == (0, b"", b"a\nb\n")
        elif "1>" not in closed:
            assert (ran.returncode, ran.stdout) == (0, b"a\nb\n")
        else:
            closed_message = (
                b"" if "2>" in closed else b"moses-rerank rerank: <stdout>: stdout is closed. Name a file to write\n"
            )
            assert (ran.returncode, ran.stderr[-len(closed_message) :]) == (2, closed_message)


def test_waiting_threads_soon_give_up_their_core(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, expected in (
        ("GOMP_SPINCOUNT", "", "10000"),
        ("GOMP_SPINCOUNT", "7", "7"),
        ("OMP_WAIT_POLICY", "active", None),
    ):
        for variable in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
            monkeypatch.delenv(variable, raising=False)
        if value:
            monkeypatch.setenv(name, value)
        assert command("presets")[0] == 0
        assert os.environ.get("GOMP_SPINCOUNT") == expected


def test_an_output_that_is_an_input_is_an_error(command: Command, write: Write, tmp_path: Path) -> None:
    nbest, weights = write("list", LIST), write("m.ini", "[weight]\nL= 1\n")
    reference = write("ref", "a\nb\n")
    (tmp_path / "link").symlink_to(weights)
    (tmp_path / "folder").mkdir()
    scores = write("scores", "1\n2\n")
    status, _, err = command(
        "score", nbest, "--source", reference, "--feature", f"S=scores:{scores}", "--output", scores
    )
    assert (status, "the command reads this file and would write over it" in err) == (2, True)
    for output in (weights, tmp_path / "folder" / ".." / "m.ini", tmp_path / "link", nbest, reference):
        status, _, err = command(
            "tune", nbest, "--reference", reference, "--initial-weights", weights, "--output", output
        )
        assert (status, "the command reads this file and would write over it" in err) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", weights, "--output", "x", "--nbest", nbest)
    assert (status, "the command reads this file" in err) == (2, True)
    assert (weights.read_text(), nbest.read_text()) == ("[weight]\nL= 1\n", LIST)
    out = tmp_path / "folder" / ".." / "out"
    status, _, err = command("rerank", nbest, "--weights", weights, "--output", tmp_path / "out", "--nbest", out)
    assert (status, "--output and --nbest name the same file or folder" in err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "list", "m.ini", "ref", "scores"]


@pytest.mark.parametrize(
    ("of", "old", "new"), [(of, *pair) for of, renamed in RENAMED.items() for pair in renamed.items()]
)
def test_an_old_option_is_an_error_that_names_the_new_option(command: Command, of: str, old: str, new: str) -> None:
    for arguments in ((old, "x"), (f"{old}=x",)):
        status, out, err = command(of, *arguments)
        assert (status, out, err) == (2, b"", f"moses-rerank {of}: {old} is now {new}\n")


def test_infinite_numbers_are_errors(command: Command, write: Write, tmp_path: Path) -> None:
    nbest = write("list", "0 ||| a ||| L= 3e38 ||| 0\n0 ||| b ||| L= 1e308 ||| 0\n")
    status, _, err = command("rerank", nbest, "--weights", write("w", "L= 3e38\n"), "--output", tmp_path / "out")
    assert (status, "list:2: feature 'L': the absolute value of '1e308' exceeds 3.4e+38" in err) == (2, True)
    source = write("source", "x\n")
    status, _, err = command("score", nbest, "--source", source, "--feature", "consensus:bleu,1e400")
    assert (status, "expected a scale from 0, found '1e400'" in err) == (2, True)


CONTROLS = "\x1b[2J\x07\x9b\u202e\r"


def test_control_characters_are_escaped_in_messages(command: Command, write: Write) -> None:
    """Data is written unchanged. Text in right-to-left scripts stays readable."""
    text = f"בית {CONTROLS}x"
    content = f"0 ||| {text} ||| L{CONTROLS}= 1 ||| 0\n0 ||| y ||| L{CONTROLS}= 0 ||| 0\n"
    nbest, lines = write(f"list{CONTROLS}\n", content), write(f"text{CONTROLS}", f"{text}\n")
    weights = write("weights", f"L{CONTROLS}= 1\n")
    for arguments in (
        ("explain", nbest, "--weights", weights, "--sentence", 0, "--source", lines),
        ("validate", nbest, "--source", lines),
        ("evaluate", lines, "--reference", lines, "--nbest", nbest),
        ("evaluate", lines, "--reference", lines, "--json"),
    ):
        status, out, err = command(*arguments)
        shown = out.decode().replace("\n", "")
        assert (status, shown.isprintable(), err.replace("\n", "").isprintable()) == (0, True, True)
        assert r"\x1b[2J" in shown or "u001b[2J" in shown
        assert "בית" in shown or arguments[0] != "explain"
    status, out, err = command("rerank", nbest, "--weights", write("other", f"M{CONTROLS}= 1\n"))
    assert (status, out, err.count("\n"), err.replace("\n", "").isprintable()) == (2, b"", 2, True)
    assert command("rerank", nbest, "--weights", weights)[1] == f"{text}\n".encode()
    assert command("validate", nbest, "--regroup")[1] == content.encode()


def test_messages_are_short(command: Command, write: Write, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    long = "x" * 100_000
    nbest = write("list", f"0 ||| a ||| {long}= 1 ||| 0\n")
    status, _, err = command("rerank", nbest, "--weights", write("w", "L= 1\n"))
    assert (status, f"list:1: feature '{'x' * 80}'… has no weight in" in err) == (2, True)
    assert max(map(len, err.split("\n"))) < 600
    status, _, err = command("rerank", nbest, "--weights", write("w", f"{long}= 1\n{long}y= 1\n"))
    assert (status, max(map(len, err.split("\n"))) < 600) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", f"{'x/' * 300}weights")
    assert (status, err.split(" ")[2]) == (2, f"{'x/' * 40}…{'x/' * 36}weights:")
    with pytest.raises(SystemExit):
        command("rerank", nbest, "--weights", "w", "--sentences", "9" * 5000)
    errors = capfdbinary.readouterr().err.decode()
    errors += command("rerank", nbest, "--weights", "w", f"\x1b{long}")[2]
    assert f"--sentences: expected a whole number from 0, found '{'9' * 80}'…. See --help\n" in errors
    assert (r"unknown arguments: \x1bxxx" in errors, max(map(len, errors.split("\n"))) < 600) == (True, True)


def test_an_output_inside_an_input_folder_is_an_error(command: Command, write: Write, tmp_path: Path) -> None:
    nbest, source = write("list", LIST), write("source", "a\nb\n")
    for folder, part in (("model", "config.json"), ("model", "source.vocabulary"), ("reranker", "features/LM/lm.arpa")):
        (tmp_path / folder / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / part).write_text("kept")
        (tmp_path / folder / f"{folder}.json").write_text("{}")
        feature = ("--feature", f"N=neural:{tmp_path / folder}[logprob,worst]")
        output = ("--output", tmp_path / folder / part)
        status, _, err = command("score", nbest, "--source", source, *feature, *output)
        assert (status, "reads this file and would write over it" in err) == (2, True)
        assert (tmp_path / folder / part).read_text() == "kept"


def test_an_output_that_is_the_sparse_weight_file_is_an_error(command: Command, write: Write) -> None:
    nbest, reference = write("list", LIST), write("reference", "a\nb\n")
    sparse, initial = write("sparse", "a_b 1\n"), write("initial", "[weight]\nL= 1\n[weight-file]\nsparse\n")
    status, _, err = command("tune", nbest, "--reference", reference, "--initial-weights", initial, "--output", sparse)
    assert (status, "reads this file and would write over it" in err) == (2, True)
    assert sparse.read_text() == "a_b 1\n"


def test_stdin_named_twice_is_an_error(command: Command) -> None:
    for arguments in (("tune", "-", "--reference", "-", "--initial-weights", "s"), ("validate", "-", "--source", "-")):
        output = ("--output", "x") if arguments[0] == "tune" else ()
        status, _, err = command(*arguments, *output)
        assert (status, "stdin is named twice, and can be read once" in err) == (2, True)


def test_validate_with_output_but_without_regroup_is_an_error(command: Command, write: Write, tmp_path: Path) -> None:
    status, _, err = command("validate", write("list", LIST), "--output", tmp_path / "report")
    assert (status, "--output needs --regroup" in err, (tmp_path / "report").exists()) == (2, True, False)


def test_an_interrupt_while_parsing_arguments(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "make_parser", stop)
    status, _, err = command("presets")
    assert (status, err) == (130, "moses-rerank presets: stopped\n")


def test_a_full_stderr_does_not_stop_the_command(write: Write, tmp_path: Path) -> None:
    nbest, weights, output = write("list", LIST), write("weights", "L= 1\n"), tmp_path / "output"
    script = f"{sys.executable} -m rerank.cli rerank {nbest} --weights {weights} --output {output} 2> /dev/full"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(script, shell=True, env=environment, capture_output=True, check=False)
    assert (ran.returncode, output.read_text().count("\n")) == (0, 2)


def test_a_full_device(command: Command, write: Write) -> None:
    nbest, weights = write("list", LIST), write("weights", "L= 1\n")
    status, _, err = command("rerank", nbest, "--weights", weights, "--output", "/dev/full")
    assert (status, err.split("\n")[-2]) == (2, "moses-rerank rerank: /dev/full: No space left on device")
    script = f"{sys.executable} -m rerank.cli presets > /dev/full"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(script, shell=True, env=environment, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, b"moses-rerank presets: <stdout>: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "moses-rerank: the following arguments are required: COMMAND. See --help"),
        (["scor"], "moses-rerank: argument COMMAND: invalid choice: 'scor' (choose from "),
        (["rerank"], "moses-rerank rerank: the following arguments are required: NBEST, --weights. See --help"),
        (
            ["rerank", "l", "--weights", "w", "--sentences", "x"],
            "argument --sentences: expected a whole number from 0, found",
        ),
        (["rerank", "l", "--weights", "w", "--sorce", "s", "t"], "rerank: unknown arguments: --sorce s t. See --help"),
        (
            ["evaluate", "s", "--ref", "r"],
            "evaluate: the following arguments are required: --reference. See --help",
        ),  # no abbreviations
        (["tune", "l", "--start", "s"], "moses-rerank tune: --start is now --initial-weights"),
        (["rerank", "l", "--weights", "w", "--a\nb\x1b"], r"unknown arguments: --a\nb\x1b. See --help"),
        (
            ["rerank", "no\nlist", "--weights", "/dev/null/a\nb"],
            r"rerank: /dev/null/a\nb: Not a directory",
        ),
    ],
)
def test_wrong_arguments_are_errors_in_one_line(
    capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(str(ended.code))
    err = capfd.readouterr().err
    assert (status, err.count("\n")) == (2, 1)
    assert message in err


def test_out_of_memory_is_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.commands.presets.run", lambda _: bytearray(2**62))
    assert command("presets") == (2, b"", "moses-rerank presets: out of memory. Process less at a time\n")


PAIRS = "0 ||| a b ||| LM0= -1 ||| -1\n0 ||| a c ||| LM0= -2 ||| -2\n1 ||| b a ||| LM0= -1 ||| -1\n"


@pytest.mark.parametrize(
    ("arguments", "bars", "status"),
    [
        (["validate", "one.nbest"], ["validate"], 0),
        (["validate", "--regroup", "one.nbest"], ["regroup"], 0),
        (["merge", "one.nbest", "two.nbest"], ["merge"], 0),
        (["rerank", "one.nbest", "--weights", "weights.ini"], ["choose"], 0),
        (["evaluate", "--reference", "text", "text", "--nbest", "one.nbest"], ["read candidates", "measure"], 0),
        (["init", "one.nbest", "text"], ["inspect files", "match files"], 2),  # the files are not sufficient
        (
            [
                "tune",
                "one.nbest",
                "--reference",
                "text",
                "--initial-weights",
                "weights.ini",
                "--tuner",
                "kbmira",
                "--metric",
                "chrf",
            ],
            ["read list", "tune by kbmira"],
            0,
        ),
    ],
)
def test_long_commands_show_progress_bars(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, arguments: list[str], bars: list[str], status: int
) -> None:
    shown: list[str] = []

    class Seen(progress.Bar):
        def __init__(self, *of: Any, **named: Any) -> None:
            shown.append(of[1])
            super().__init__(*of, **named)

    monkeypatch.setattr(progress, "Bar", Seen)
    monkeypatch.chdir(write("one.nbest", PAIRS).parent)
    for name, content in {"two.nbest": PAIRS, "weights.ini": "[weight]\nLM0= 0.5\n", "text": "a b\nb a\n"}.items():
        write(name, content)
    assert command(*arguments)[0] == status
    assert shown == bars


def test_no_progress_bar_if_the_output_is_a_terminal(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replacements, nbest = read_replacements(None, None, "error"), str(write("one.nbest", PAIRS))
    shown: list[object] = []
    monkeypatch.setattr("rerank.linear.selection.with_bar", lambda name, lists, total: shown.append(name) or lists)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    choose_by_total(nbest, replacements, "-")
    assert shown == []
    choose_by_total(nbest, replacements, str(tmp_path / "out"))
    assert shown == ["choose"]


PATHS = {
    "FILE", "DIR", "NBEST", "WEIGHTS", "MODEL", "SYSTEM", "INI", "RERANKER", "EXPERIMENT", "STUDY", "META", "SOURCE",
    "REFERENCES", "CONFIG", "blank|FILE", "copy|keep|FILE", "[NAME=]NBEST", "[LABEL=]KIND[:ARG]", "LABEL=KIND[:ARG]",
    "hf:DIR", "LIST",
}  # fmt: skip
"""Metavariables of arguments that are or contain paths."""


def parsers() -> dict[str, list[argparse.ArgumentParser]]:
    """Return the parsers of each command, including those of its subcommands."""

    def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: each for group in groups for name, each in group.choices.items()}

    return {name: [parser, *below(parser).values()] for name, parser in below(make_parser()).items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_declare_their_input_and_output_paths(name: str, write: Write) -> None:
    actions = {action.dest: action for parser in parsers()[name] for action in parser._actions}
    paths = {dest for dest, action in actions.items() if action.metavar in PATHS and dest != "working_dir"}
    types = {dest: action.type for dest, action in actions.items() if isinstance(action.type, type)}
    inputs = {dest: each for dest, each in types.items() if issubclass(each, InputPath)}
    outputs = [dest for dest, each in types.items() if issubclass(each, OutputPath)]
    assert {*inputs, *outputs} == paths
    assert all(f"--{output}" in actions[output].option_strings for output in outputs)
    path = str(write("path", "L= 1\n"))
    for one, output in itertools.product(inputs, outputs):
        text = InputPath({"feature": f"S=scores:{path}", "lists": f"Moses={path}"}.get(one, path))
        for value in (text, [text]):
            with pytest.raises(InputError, match="the command reads this file and would write over it"):
                check_arguments(argparse.Namespace(**{one: value, output: OutputPath(path)}))
    for dest, each in types.items():
        if dest in paths:
            with pytest.raises(InputError, match="NUL"):
                check_arguments(argparse.Namespace(**{dest: each("a\0b")}))
    for one, other in itertools.combinations(sorted(outputs, key=lambda name: name != "output"), 2):
        with pytest.raises(InputError, match=f"--{one} and --{other} name the same file or folder"):
            check_arguments(argparse.Namespace(**{one: OutputPath(path), other: OutputPath(path)}))


def test_help_paragraphs_fit_the_terminal_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        make_parser().parse_args(["init", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  moses-rerank")) <= 60
    assert "  moses-rerank init data/" in lines
