"""One attempt to break a command, in a process of its own, and what is wrong with how it ended."""

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
"""What a command may take, and the length of what it says is wrong."""

LIMIT = 8 * 2**30
"""Bytes after which the system refuses memory to a case, for the sake of what else is at work."""

REFUSED, EITHER = frozenset({2}), frozenset({0, 2})

TALKING = ("validate", "explain", "evaluate", "features", "presets", "run", "study")
"""Commands whose stdout is for people."""

OWN = re.compile(r"(work|cache|model|\..+\.scored)(/|$)")
"""Folders in which commands may change files; the last has what was scored of a list before its fault."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


_MANY = re.compile(r"\{(\S+?)\*([0-9]+)\}")


def read_lines(name: str) -> list[tuple[str, frozenset[int]]]:
    """Return the lines of a file in `lines/`, and the exit statuses that are right: both where a line begins with `? `.

    `{x*300}` stands for 300 of them, `\\x1b` for a character.
    """
    lines = (Path(__file__).parent / "lines" / f"{name}.txt").read_text().removesuffix("\n").split("\n")
    texts = [_MANY.sub(lambda many: many[1] * int(many[2]), line.encode().decode("unicode_escape")) for line in lines]
    return [(text.removeprefix("? "), EITHER if text.startswith("? ") else REFUSED) for text in texts]


@dataclass(frozen=True)
class Case:
    """Arguments of `moses-rerank` in a folder with these files; `statuses` are the exit statuses that are right.

    A file's content is bytes, or the target of a symbolic link as text.
    """

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    stdin: bytes = b""
    statuses: frozenset[int] = REFUSED


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    status: int
    """Exit status, or minus the number of the signal."""
    seconds: float
    megabytes: float
    out: str
    err: str
    left: tuple[str, ...]
    """Files that were not there before."""
    changed: tuple[str, ...]
    """Files of the case that are not what they were."""


def attempt(case: Case, folder: Path) -> Outcome:
    """Run a case in a folder of its own, in a copy of this process, which has loaded what takes long."""
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
    begin = time.monotonic()
    child = os.fork()
    if not child:
        _perform(case, work, streams)
    status, usage = _wait(child, begin)
    left = [path for path in work.rglob("*") if path.is_file() and str(path.relative_to(work)) not in case.files]
    changed = [
        name for name, content in case.files.items() if isinstance(content, bytes) and not _holds(work / name, content)
    ]
    return Outcome(
        status=status,
        seconds=time.monotonic() - begin,
        megabytes=usage / 1024,
        out=(streams / "out").read_bytes().decode(errors="surrogateescape"),
        err=(streams / "err").read_bytes().decode(errors="surrogateescape"),
        left=tuple(str(path.relative_to(work)) for path in left),
        changed=tuple(changed),
    )


def _holds(path: Path, content: bytes) -> bool:
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


def _wait(child: int, begin: float) -> tuple[int, int]:
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss
        if time.monotonic() - begin > SECONDS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)


def faults(case: Case, outcome: Outcome) -> list[str]:
    """Return what is wrong with how a case ended."""
    lines = [line for line in outcome.err.split("\n") if line]
    said = [line for line in lines if line.startswith("moses-rerank")]
    shown = outcome.err + (outcome.out if case.arguments[0] in TALKING else "")
    refused = outcome.status == 2
    wrong = {
        "a traceback": "Traceback" in outcome.err,
        "a warning of a library": "Warning:" in outcome.err,
        f"status {outcome.status}": outcome.status not in case.statuses,
        f"over {SECONDS} s": outcome.seconds > SECONDS,
        f"{outcome.megabytes:.0f} MB": outcome.megabytes > MEGABYTES,
        "controls on the terminal": bool(_CONTROLS.search(shown)),
        "not one line of reason": refused and case.arguments[0] != "validate" and len(said) != 1,
        "the reason is not the last line": refused and bool(said) and lines[-1] != said[-1],
        "a long reason": any(len(line) > LINE for line in said),
        "repeats its input": any(len(word) > 200 for line in said for word in line.split(" ")),
        "an output": refused and any(not OWN.match(name) for name in outcome.left),
        "an input changed": any(not OWN.match(name) for name in outcome.changed),
        "a half file": any(Path(name).name.startswith(".") and Path(name).name != ".lock" for name in outcome.left),
    }
    return [fault for fault, holds in wrong.items() if holds]
