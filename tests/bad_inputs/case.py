"""One case of bad input: a command that runs in its own process, its outcome and its faults."""

import os
import re
import resource
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECONDS, MEGABYTES, LINE = 30, 2000, 600
"""Limits of the time of a core and the memory of a command, and of the length of its error message."""

MAX_SECONDS = 300
"""Seconds after which a command is killed. Other processes may take most of the machine."""

LIMIT = 8 * 2**30
"""Bytes of memory that a case can allocate, to protect other processes of the machine."""

ERROR = frozenset({2})
SUCCESS_OR_ERROR = frozenset({0, 2})

PRINTS_TEXT = ("validate", "explain", "evaluate", "features", "presets", "run", "study")
"""Commands whose stdout is a text for users."""

CHANGED_BY_COMMANDS = re.compile(r"(work|cache|model|\..+\.scored)(/|$)")
"""Paths that commands may change. The last one contains the scores of a list before its fault."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


_MANY = re.compile(r"\{(\S+?)\*([0-9]+)\}")


def read_lines(name: str) -> list[tuple[str, frozenset[int]]]:
    """Return the lines of a file in `lines/` with their expected exit statuses.

    If a line begins with `? `, both exit statuses are correct. `{x*300}` stands for 300 times `x`, and `\\x1b` for the
    character with this code.
    """
    lines = (Path(__file__).parent / "lines" / f"{name}.txt").read_text().removesuffix("\n").split("\n")
    texts = [_MANY.sub(lambda many: many[1] * int(many[2]), line.encode().decode("unicode_escape")) for line in lines]
    return [(text.removeprefix("? "), SUCCESS_OR_ERROR if text.startswith("? ") else ERROR) for text in texts]


@dataclass(frozen=True)
class Case:
    """A command in a folder with the given files.

    Attributes:
        arguments: the arguments of `moses-rerank`.
        files: the contents by name, as bytes, or the target of a symbolic link as text.
        statuses: the correct exit statuses.
    """

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    stdin: bytes = b""
    statuses: frozenset[int] = ERROR


@dataclass(frozen=True)
class Outcome:
    """The result of running a case."""

    status: int
    """Exit status, or the negative number of the signal."""
    seconds: float
    """Seconds of a core."""
    megabytes: float
    out: str
    err: str
    left: tuple[str, ...]
    """New files."""
    changed: tuple[str, ...]
    """Files of the case that were changed or removed."""


def attempt(case: Case, folder: Path) -> Outcome:
    """Run a case in its own folder, in a fork of this process, which has already loaded slow modules."""
    work, streams = folder / "work", folder / "streams"
    work.mkdir(parents=True)
    streams.mkdir()
    for name, content in case.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)
    (streams / "in").write_bytes(case.stdin)
    child = os.fork()
    if not child:
        _perform(case, work, streams)
    status, usage = _wait(child)
    left = [path for path in work.rglob("*") if path.is_file() and str(path.relative_to(work)) not in case.files]
    changed = [
        name
        for name, content in case.files.items()
        if isinstance(content, bytes) and not _has_content(work / name, content)
    ]
    return Outcome(
        status=status,
        seconds=usage.ru_utime + usage.ru_stime,
        megabytes=usage.ru_maxrss / 1024,
        out=(streams / "out").read_bytes().decode(errors="surrogateescape"),
        err=(streams / "err").read_bytes().decode(errors="surrogateescape"),
        left=tuple(str(path.relative_to(work)) for path in left),
        changed=tuple(changed),
    )


def _has_content(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _perform(case: Case, work: Path, streams: Path) -> None:
    from rerank.cli import main

    status = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
        os.chdir(work)
        for number, name in enumerate(("in", "out", "err")):
            os.dup2(os.open(streams / name, os.O_CREAT | os.O_RDWR, 0o600), number)
        status = main(list(case.arguments))
        sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(status)


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    begin = time.monotonic()
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), usage
        if time.monotonic() - begin > MAX_SECONDS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)


def faults(case: Case, outcome: Outcome) -> list[str]:
    """Return the faults of an outcome, as short descriptions."""
    lines = [line for line in outcome.err.split("\n") if line]
    messages = [line for line in lines if line.startswith("moses-rerank")]
    shown = outcome.err + (outcome.out if case.arguments[0] in PRINTS_TEXT else "")
    is_error = outcome.status == 2
    wrong = {
        "a traceback": "Traceback" in outcome.err,
        "a warning of a library": "Warning:" in outcome.err,
        f"status {outcome.status}": outcome.status not in case.statuses,
        f"over {SECONDS} s": outcome.seconds > SECONDS,
        f"{outcome.megabytes:.0f} MB": outcome.megabytes > MEGABYTES,
        "control characters in the output": bool(_CONTROLS.search(shown)),
        "no error message in one line": is_error and case.arguments[0] != "validate" and len(messages) != 1,
        "the error message is not the last line": is_error and bool(messages) and lines[-1] != messages[-1],
        f"an error message of over {LINE} characters": any(len(line) > LINE for line in messages),
        "a long part of the input in the error message": any(
            len(word) > 200 for line in messages for word in line.split(" ")
        ),
        "an output file in spite of the error": is_error
        and any(not CHANGED_BY_COMMANDS.match(name) for name in outcome.left),
        "a changed input file": any(not CHANGED_BY_COMMANDS.match(name) for name in outcome.changed),
        "a temporary file left over": any(
            Path(name).name.startswith(".") and Path(name).name != ".lock" for name in outcome.left
        ),
    }
    return [fault for fault, holds in wrong.items() if holds]
