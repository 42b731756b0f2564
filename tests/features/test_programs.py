"""External programs that score candidates."""

import gc
import logging
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from features.programs import RunningProgram, ask
from features.progress import log
from moses_io.files.errors import Fault

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]
Until = Callable[[Callable[[], bool]], None]

LIST = "0 ||| a b ||| L= 1 ||| 0\n0 ||| c ||| L= 1 ||| 0\n1 ||| d ||| L= 1 ||| 0\n"
COUNTING = """\
import os, sys
count = 0
for line in sys.stdin:
    if line == "\\n":
        sys.stdout.flush()
    else:
        count += 1
        print(count, os.getpid())
"""


def score(command: Command, write: Write, feature: str) -> tuple[int, bytes, str]:
    return command("score", write("list", LIST), "--source", write("src", "x\ny\n"), "--feature", feature)


def content(path: Path) -> str:
    """Return the content of a file, or an empty string if it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def is_watched(group: str) -> bool:
    """Return whether a process waits to kill a process group (`features.processes`)."""
    commands = map(content, Path("/proc").glob("[0-9]*/cmdline"))
    return any("kill -KILL" in command and group in command.split("\0") for command in commands)


def test_the_last_line_may_lack_a_line_end(command: Command, write: Write) -> None:
    options = ("--source", write("src", "x\ny\n"), "--feature", "X=command:printf '1\\n2\\n3'")
    assert command("score", write("list", LIST), *options)[1].count(b" X= ") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "exit status -9"),
        ("echo 1", "expected 3 lines, one per candidate, found 1"),
        ("echo a", "'a'"),
        ("yes 1", "more than 3 lines for 3 candidates"),
        ("cat /dev/zero", "line 1 has more than 65536 bytes"),
        ("seq 3; exec >&-; sleep 60", "closed its output, but does not end"),
        ("sleep 60 & seq 3", "ended, but left a process that keeps its output open"),
        ("exec <&- >&-; exit 1", "exit status 1"),
    ],
)
def test_a_program_with_wrong_output_or_exit_status_is_an_error(
    command: Command, write: Write, until: Until, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """The error is reported soon and no process is left."""
    if "sleep" in text:
        monkeypatch.setattr("features.programs.TIMEOUT", 0.2)
    monkeypatch.setenv("MARK_OF_THIS_TEST", "1")
    status, _, err = score(command, write, f"Mine=command:{text}")
    assert (status, f"feature 'command:{text}': " in err, message in err) == (2, True, True)
    until(lambda: not any("MARK_OF_THIS_TEST" in content(path) for path in Path("/proc").glob("[0-9]*/environ")))


@pytest.mark.parametrize("text", ["seq 3", "exec <&-; seq 3", "sleep 0.5; seq 3", "cut -c 1-0; seq 3; sleep 0.1"])
def test_a_program_may_ignore_its_input_and_may_be_slow(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("features.programs.TIMEOUT", 0.2)
    status, out, err = score(command, write, f"Mine=command:{text}")
    assert (status, re.findall(r"Mine= (\d)", out.decode())) == (0, ["1", "2", "3"]), err


def test_a_program_may_close_its_output_before_it_reads_its_input() -> None:
    """The input is larger than a pipe buffer, so the program reaches its end only if stdin is closed."""
    assert ask("echo 1; exec >&-; cat >/dev/null", b"x\ty\n" * 200_000, 1) == b"1\n"


def test_texts_larger_than_a_pipe_buffer() -> None:
    text = b"x y\tz\n" * 200_000
    assert ask("cat", text, 200_000) == text
    assert ask("seq 200000", text, 200_000).count(b"\n") == 200_000
    assert ask("true", text, 1) == b""


def test_a_server_is_started_once(command: Command, write: Write) -> None:
    program = write("count.py", COUNTING)
    _, out, err = score(command, write, f"Mine=server:{sys.executable} {program}")
    found = re.findall(r"Mine= (\d) (\d+)", out.decode())
    assert ([number for number, _ in found], len({process for _, process in found})) == (["1", "2", "3"], 1), err


def test_a_running_program_answers_several_requests(write: Write) -> None:
    program = RunningProgram([sys.executable, str(write("count.py", COUNTING))])
    process = int(program.ask(b"a\tb\n\n", 1)[0].split()[1])
    assert program.ask(b"a\tb\na\tc\n\n", 2) == [f"2 {process}", f"3 {process}"]
    assert program.ask(b"", 0) == []
    del program
    gc.collect()
    assert not Path(f"/proc/{process}").exists()


def test_a_running_program_with_texts_larger_than_a_pipe_buffer() -> None:
    assert len(RunningProgram("cat").ask(b"x\ty\n" * 200_000, 200_000)) == 200_000


def test_a_forked_process_starts_its_own_program(write: Write) -> None:
    program = RunningProgram([sys.executable, str(write("count.py", COUNTING))])
    (first,) = program.ask(b"a\tb\n\n", 1)
    child = os.fork()
    if not child:
        (own,) = program.ask(b"a\tb\n\n", 1)
        del program
        gc.collect()
        os._exit(0 if own.split()[0] == "1" and own != first else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert program.ask(b"a\tb\n\n", 1) == [f"2 {first.split()[1]}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 3", "exit status 3 after 0 lines for 2 candidates"),
        ("echo 1", "exit status 0 after 1 line for 2 candidates"),
        ("echo A reason >&2; echo; exit 1", r"exit status 1 after 1 line for 2 candidates \('A reason'\)"),
        ("yes 1", "more than 2 lines for 2 candidates"),
        ("cat /dev/zero", "line 1 has more than 65536 bytes"),
        ("exec >&-; sleep 60", "closed its output after 0 lines for 2 candidates"),
        ("nowhere/program", "exit status 127"),
    ],
)
def test_a_failure_of_a_running_program_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    if "sleep" in text:
        monkeypatch.setattr("features.programs.TIMEOUT", 0.2)
    with pytest.raises(Fault, match=message):
        RunningProgram(text, quiet=True).ask(b"a\tb\na\tc\n\n", 2)


def test_leftover_lines_after_an_error_are_not_used_for_the_next_request() -> None:
    program = RunningProgram("while read -r line; do [ -n \"$line\" ] || printf '1\\n2\\n3\\n'; done")
    with pytest.raises(Fault, match="more than 2 lines"):
        program.ask(b"a\tb\na\tc\n\n", 2)
    assert program.ask(b"a\tb\na\tc\na\td\n\n", 3) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("read -r l; read -r e; echo 1; sleep 0.1; echo 2", "more lines than candidates"),
        ("read -r l; read -r e; echo 1; exec >&-; sleep 60", "closed its output after 0 lines for 1 candidate"),
        ("read -r l; read -r e; echo 1; exit 3", "exit status 3 after 0 lines for 1 candidate"),
    ],
)
def test_output_or_exit_between_requests_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    if "sleep" in text:
        monkeypatch.setattr("features.programs.TIMEOUT", 0.2)
    program = RunningProgram(text)
    assert program.ask(b"a\tb\n\n", 1) == ["1"]
    assert program._program and program._program.stdout
    assert select.select([program._program.stdout], [], [], 60)[0]  # the output continues or ends
    with pytest.raises(Fault, match=message):
        program.ask(b"a\tb\n\n", 1)


@pytest.mark.usefixtures("progress")
def test_a_silent_program_gives_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program stays silent until the warning was logged."""
    monkeypatch.setattr("features.programs.TIMEOUT", 0.1)
    monkeypatch.setattr("features.programs.SILENCE_TIMEOUT", 0.2)
    warned = tmp_path / "warned"
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: warned.touch())
    program = RunningProgram(f"until [ -e {warned} ]; do sleep 0.1; done; sleep 1; echo 1", name="my program")
    log.addHandler(handler)
    try:
        assert program.ask(b"a\tb\n\n", 1) == ["1"]
    finally:
        log.removeHandler(handler)
    assert capsys.readouterr().err.count("my program: no output for 0 s. The program must flush") == 1


def test_a_server_that_does_not_print_numbers_is_an_error(command: Command, write: Write) -> None:
    status, _, err = score(command, write, "Mine=server:grep --line-buffered .")
    assert (status, "feature 'server:grep --line-buffered .': line 1: expected numbers, found" in err) == (2, True)


@pytest.mark.parametrize(
    ("kind", "ended_by"),
    [("command", signal.SIGKILL), ("server", signal.SIGKILL), ("command", signal.SIGTERM), ("server", signal.SIGINT)],
)
def test_programs_end_with_the_command(
    write: Write, tmp_path: Path, until: Until, is_running: Callable[[str], bool], kind: str, ended_by: signal.Signals
) -> None:
    """Child processes of the program also end. The signal is sent only to `moses-rerank`."""
    write("src", "x\ny\n")
    write("list", LIST)
    script = "sleep 100 & echo $$ $! > pids.new; mv pids.new pids; wait"
    words = ["score", "list", "--source", "src", "--feature", f"Mine={kind}:{script}", "--output", "out"]
    process = subprocess.Popen([sys.executable, "-m", "rerank.cli", *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
    until((tmp_path / "pids").exists)
    pids = (tmp_path / "pids").read_text().split()
    assert [is_running(pid) for pid in pids] == [True, True]
    until(lambda: is_watched(pids[0]))
    process.send_signal(ended_by)
    process.wait(60)
    until(lambda: not any(is_running(pid) for pid in pids))
