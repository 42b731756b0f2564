"""Wrong experiment files and altered folders of results."""

from collections.abc import Iterator
from pathlib import Path

from case import ERROR, SUCCESS_OR_ERROR, Case, read_lines

GOOD = """\
output = "work"
initial_weights = "{valid}/moses.ini"
train = {{ source = "{valid}/train.de", target = "{valid}/train.en" }}
dev = {{ source = "{valid}/dev.de", reference = "{valid}/dev.en", nbest = "{valid}/nbest" }}
test = {{ source = "{valid}/dev.de", reference = "{valid}/dev.en", nbest = "{valid}/nbest" }}
[models]
{models}
[features]
{features}
[tuning]
climbs = 1
{tuning}
"""
WHOLE = {
    "empty": b"",
    "no table": b"x",
    "NUL": b'output = "a\0b"\n',
    "binary": bytes(range(256)),
    "UTF-16": "output = 1".encode("utf-16"),
    "deep": b"x = " + b"[" * 200_000,
    "deep tables": b"x = " + b"{a=" * 100_000,
    "deep keys": b".".join([b"a"] * 100_000) + b" = 1",
    "digits": b"x = " + b"9" * 6000,
    "large": b"# x\n" * 20_000_000,
    "output number": b"output = 1",
    "unknown": b"evil = 1\n",
    "unknown with controls": b'"\\u001b[31m" = 1\n',
    "twice": b"output = 1\noutput = 2\n",
    "dates": b"output = 1979-05-27\n",
}
PATHS = (
    ('output = "work"', 'output = "experiment.toml"'),
    ('output = "work"', 'output = "/dev/null/x"'),
    ('output = "work"', 'output = "a\\u0000b"'),
    ('output = "work"', 'output = "."'),
    ("train.de", "nowhere"),
    ("dev.en", "train.en"),
    ("moses.ini", "dev.en"),
    ("/nbest", "/dev.en"),
    ("train.de", "forward"),
    ("moses.ini", "nowhere"),
    ("dev.de", "a\\u0000b"),
    ("test = {", "test = { evil = 1, "),
    ("test = {", "test = 3 #"),
    ("test = {", "test = [3] #"),
    ("test = {", "test = [{}] #"),
    ("test = {", 'test = { name = "../evil", '),
)
RECORDS = {
    "null": b"null",
    "list": b"[]",
    "number": b"3",
    "text": b'"x"',
    "empty": b"",
    "deep": b"[" * 200_000,
    "NUL": b"\0",
    "not UTF-8": b"\xff",
    "stage null": b'{"tune": null}',
    "stage list": b'{"tune": []}',
    "stages odd": b'{"score dev F": {"inputs": 3}}',
    "zeros": "/dev/zero",
    "link": "experiment.toml",
    "folder": "/",
    "digits": b'{"x": ' + b"9" * 6000 + b"}",
}


def experiment_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each experiment file with one fault and for each altered folder of results."""
    for kind in ("models", "features", "tuning"):
        for line, statuses in read_lines(kind):
            yield _case(
                f"experiment {kind} {line[:70]}", {"experiment.toml": _experiment(valid, **{kind: line})}, statuses
            )
    for line, statuses in read_lines("study"):
        study = _experiment(valid, features='F = "length"') + f"[study]\n{line}\n".encode()
        yield Case(f"study {line[:70]}", ("study", "study.toml"), {"study.toml": study}, statuses=statuses)
    for name, content in WHOLE.items():
        yield _case(f"experiment {name}", {"experiment.toml": content})
    good = _experiment(valid, features='F = "length"').decode()
    for old, new in PATHS:
        unread = old == "train.de" or new == 'output = "."'
        files = {"experiment.toml": good.replace(old, new).encode()}
        yield _case(f"experiment {old} is {new}", files, SUCCESS_OR_ERROR if unread else ERROR)
    for name, record in RECORDS.items():
        yield _case(f"record {name}", {"experiment.toml": good.encode(), "work/stages.json": record}, SUCCESS_OR_ERROR)
    for name in ("dev.nbest.gz", "weights.ini", "report.txt", ".lock", "models"):
        files = {"experiment.toml": good.encode(), f"work/{name}": "../precious", "precious": b"keep"}
        yield _case(f"result {name} is a link", files, SUCCESS_OR_ERROR)
    modules = {f"{name}.py": b"raise SystemExit('imported')" for name in ("redis", "cffi", "wcwidth", "numba", "scipy")}
    yield _case(
        "modules in the folder of the experiment",
        {"experiment.toml": good.encode(), **modules, "dill/x": b""},
        frozenset({0}),
    )


def _experiment(valid: Path, models: str = "", features: str = "", tuning: str = "") -> bytes:
    return GOOD.format(valid=valid, models=models, features=features, tuning=tuning).encode()


def _case(name: str, files: dict[str, bytes | str], statuses: frozenset[int] = ERROR) -> Case:
    return Case(name, ("run", "experiment.toml"), files, statuses=statuses)
