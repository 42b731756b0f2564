"""Wrong and unusual weight files, and wrong outputs of Moses' tuners."""

from collections.abc import Iterator
from pathlib import Path

from case import ERROR, SUCCESS_OR_ERROR, Case
from valid import init_files

BAD = {
    "empty": b"",
    "no weights": b"[weight]\n",
    "letters": b"[weight]\nLM0= x\n",
    "nan": b"[weight]\nLM0= nan\n",
    "1e400": b"[weight]\nLM0= 1e400\n",
    "infinite": b"[weight]\nLM0= inf\n",
    "5000 digits": b"[weight]\nLM0= " + b"9" * 5000 + b"\n",
    "no name": b"[weight]\n= 1\n",
    "binary": bytes(range(256)) * 10,
    "names itself": b"[weight]\nLM0= 1\n[weight-file]\nini\n",
    "names a folder": b"[weight]\nLM0= 1\n[weight-file]\n.\n",
    "names a pipe of zeros": b"[weight]\nLM0= 1\n[weight-file]\n/dev/zero\n",
    "names nothing there": b"[weight]\nLM0= 1\n[weight-file]\nnowhere\n",
    "names a bad file": b"[weight]\nLM0= 1\n[weight-file]\nsparse\n",
    "controls": b"[weight]\n\x1b[31mLM0\x07= x\x1b[2J\n",
    "a long line": b"[weight]\nLM0= " + b"1 " * 6_000_000,
    "a long name": b"[weight]\n" + b"A" * 100_000 + b"= y\n",
    "too few values": b"[weight]\nTranslationModel0= 1\n",
    "gzip cut": b"\x1f\x8b\x08\x00",
}
ODD = {
    "other features": b"[weight]\nOther0= 1\n",
    "twice": b"[weight]\nLM0= 1\nLM0= 2\n",
    "no section": b"LM0= 1\n",
    "CRLF": b"[weight]\r\nLM0= 1\r\n",
    "old": b"[weight-l]\n0.5\n[weight-d]\n1\n",
    "zeros": b"[weight]\nLM0= 0\n",
    "huge": b"[weight]\nLM0= 1e308\nDistortion0= -1e308\n",
    "NUL": b"[weight]\nLM0= 1\n\0\n",
    "no equals": b"[weight]\nLM0 1\n",
    "byte order mark": b"\xef\xbb\xbf[weight]\nLM0= 1\n",
    "brackets": b"[weight]\n[[LM0]]= 1\n",
    "init.opt": b"1 2 3\n4 5 6\n",
}


def weight_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each weight file and each command that reads one, and for each output of a tuner."""
    for contents, statuses in ((BAD, ERROR), (ODD, SUCCESS_OR_ERROR)):
        for name, content in contents.items():
            for command, arguments in weight_readers(valid).items():
                files = {"ini": content, "sparse": b"x y z\n\x1b[31m nan\n"}
                yield Case(f"weights {name}: {command}", arguments, files, statuses=statuses)
    for name, content in (("letters", b"F0 x\n"), ("column without end", b"F" + b"9" * 30 + b" 1\n"), *ANSWERS):
        arguments = ("import-weights", ".", "answer", "--output", "out")
        yield Case(
            f"answer {name}", arguments, {"answer": content, "init.dense": b"LM0 1\n"}, statuses=SUCCESS_OR_ERROR
        )


ANSWERS = (
    ("empty", b""),
    ("binary", bytes(range(256))),
    ("nan", b"F0 nan\n"),
    ("1e400", b"F0 1e400\n"),
    ("5000 digits", b"F" + b"1" * 5000 + b" 1\n"),
    ("log", b"Best point: 1 x 3 => 0.5\n"),
    ("controls", b"\x1b[31mF0 1\n"),
    ("a line without end", b"F0 " + b"1" * 12_000_000),
)


def weight_readers(valid: Path) -> dict[str, tuple[str, ...]]:
    """Return arguments of every command that reads weights."""
    nbest, out = f"{valid}/nbest", ("--output", "out")
    return {
        "tune": ("tune", nbest, "--reference", f"{valid}/dev.en", "--initial-weights", "ini", *out),
        "rerank": ("rerank", nbest, "--weights", "ini", *out),
        "explain": ("explain", nbest, "--weights", "ini", "--sentence", "0"),
        "validate": ("validate", nbest, "--weights", "ini"),
        "score": ("score", nbest, "--source", f"{valid}/dev.de", "--feature", "rest:ini", *out),
        "init": ("init", "ini", nbest, *init_files(valid, but="moses.ini"), *out),
    }
