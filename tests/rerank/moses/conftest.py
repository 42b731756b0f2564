"""A small part of the sample, and a program that replaces the Moses decoder: it writes the list of the sample."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Accepts only options of Moses, with their numbers of values, and appends its arguments to the file `calls`.
DECODER = """\
#!{python}
import sys
from pathlib import Path

folder = Path(__file__).resolve().parent
values = {{"-config": 1, "-f": 1, "-n-best-list": 3, "-input-file": 1}}
values |= {{"-threads": 1, "-v": 1, "-mbr": 0, "-text-type": 1}}
words, options = sys.argv[1:], {{}}
while words:
    flag = words.pop(0)
    if flag not in values:
        sys.exit("unknown option " + flag)
    options[flag] = [words.pop(0) for _ in range(values[flag])]
with open(folder / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
print("loading the model", file=sys.stderr)
printed = 1
{fault}
(ini,) = options.get("-config") or options["-f"]
assert "[weight]" in Path(ini).read_text()
path, size, distinct = options["-n-best-list"]
assert distinct == "distinct"
text = Path(options["-input-file"][0]).read_text() if "-input-file" in options else sys.stdin.read()
name = next(name for name in ("dev", "test") if (folder / (name + ".de")).read_text() == text)
with open(folder / (name + ".nbest")) as listed, open(path, "w") as nbest:
    ranks = {{}}
    for line in listed:
        sentence = line.split(" ")[0]
        ranks[sentence] = ranks.get(sentence, 0) + 1
        if ranks[sentence] <= int(size):
            nbest.write(line)
            if ranks[sentence] == printed:
                print(line.split(" ||| ")[1])
"""

MODELS = """\
[models]
forward = { preset = "cohn-align", embedding_size = 24, hidden_size = 32, epochs = 2, learning_rate = 0.01 }

[features]
NMT = "neural:forward"
Len = "length"

[tuning]
tuner = "kbmira"
iterations = 10
runs = 2
fallback = false
"""


@pytest.fixture
def folder(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with texts, lists and the ini file."""
    path = small(candidates=100)
    (path / "models.toml").write_text(MODELS)
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def decoder(folder: Path) -> Callable[..., Path]:
    """Return a function that writes the decoder, optionally with additional code that makes it fail."""

    def make(fault: str = "") -> Path:
        path = folder / "moses"
        path.write_text(DECODER.format(python=sys.executable, fault=fault))
        path.chmod(0o755)
        return path

    return make
