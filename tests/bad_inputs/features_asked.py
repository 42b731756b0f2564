"""Wrong feature requests, and wrong files of features and caches."""

import gzip
from collections.abc import Iterator
from pathlib import Path

from case import SUCCESS_OR_ERROR, Case, read_lines

OWN = b"""\
class Missing_:
    pass
class Shape:
    signature = "shape"
    def __init__(self, argument, resources):
        pass
    def __call__(self, sentences):
        return [[1, 2], [3]]
number = 3
"""
TABLES = {
    "lexical": {
        "letters": b"the der x\n",
        "nan": b"the der nan\n",
        "1e400": b"the der 1e400\n",
        "two fields": b"the der\n",
        "binary": bytes(range(256)) * 9,
        "negative": b"the der -1\n",
        "controls": b"\x1b[31m\n",
        "empty": b"",
        "long": b"the der 0." + b"1" * 12_000_000,
        "cut": gzip.compress(b"the der 1\n" * 99)[:-9],
        "5000 digits": b"the der " + b"1" * 5000 + b"\n",
    },
    "kenlm": {
        "empty": b"",
        "text": b"the house\n" * 9,
        "head alone": b"\\data\\\n",
        "no end": b"\\data\\\nngram 1=1\n\n\\1-grams:\n",
        "counts of 10^15": b"\\data\\\nngram 1=1000000000000000\n\n\\1-grams:\n-1 a\n\\end\\\n",
        "letters": b"\\data\\\nngram 1=x\n",
        "negative": b"\\data\\\nngram 1=-5\nngram 2=2\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-1\ta\n\n\\2-grams:\n",
        "binary": b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(200),
        "cut": gzip.compress(b"\\data\\\n" * 99)[:-9],
        "not UTF-8": b"\xff\xfe\xfd" * 30,
        "wrong counts": b"\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n\n\\end\\\n",
    },
    "scores": {
        "letters": b"x\n" * 72,
        "nan": b"nan\n" * 72,
        "1e400": b"1e400\n" * 72,
        "too few": b"1\n" * 71,
        "too many": b"1\n" * 73,
        "ragged": b"1\n" * 71 + b"1 2\n",
        "binary": bytes(range(256)),
        "empty": b"",
        "controls": b"\x1b[31m\n" * 72,
        "5000 digits": b"9" * 5000 + b"\n" + b"1\n" * 71,
        "JSON": b'{"a": [' * 500,
        "deep": b"[" * 200_000,
    },
}


def feature_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each wrong request, each wrong table and each wrong cache."""
    score = ("score", f"{valid}/nbest", "--source", f"{valid}/dev.de", "--output", "out")
    for number, (text, statuses) in enumerate(read_lines("requests")):
        request = text.replace("{valid}", str(valid))
        yield Case(
            f"feature {number} {text[:50]}", (*score, "--feature", request), {"evilmod.py": OWN}, statuses=statuses
        )
    for kind, contents in TABLES.items():
        for name, content in contents.items():
            yield Case(f"{kind} {name}", (*score, "--feature", f"{kind}:table"), {"table": content})
    model = (*score, "--feature", f"neural:{valid}/forward", "--cache")
    for name, path in (("device", "/dev/null"), ("nowhere", "/dev/null/x"), ("text", f"{valid}/dev.de")):
        yield Case(f"cache is {name}", (*model, path))
    for name, content in (("text", b"x" * 5000), ("empty", b""), ("head", b"SQLite format 3\0" + bytes(500))):
        yield Case(f"cache {name}", (*model, "cache"), {"cache/scores.sqlite": content}, statuses=SUCCESS_OR_ERROR)
    yield Case("a label twice", (*score, "--feature", "A=length", "--feature", "A=copied"))
    yield Case("a label of the list", (*score, "--feature", "LM0=length"))
    yield Case(
        "features that would be imported",
        (*score, "--feature", "length"),
        {f"{name}.py": b"raise SystemExit('imported')" for name in ("redis", "cffi", "wcwidth", "dill", "numba")},
        statuses=frozenset({0}),
    )
