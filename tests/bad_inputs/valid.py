"""Valid files. Each case replaces one of them."""

import contextlib
import gzip
import io
import os
import sys
from pathlib import Path

from features.request import parse_requests
from rerank.cli import main
from rerank.reranker.folder import write_folder
from rerank.sample import FOLDER

SENTENCES, CANDIDATES, PAIRS = 12, 6, 80
FEATURES = ("Len=length", "NMT=neural:{}/forward")
SMALL = ("embedding_size=8", "hidden_size=8", "attention_size=8", "epochs=1", "min_frequency=1")


def make_valid(folder: Path) -> Path:
    """Make a folder with a list, its texts, weights, tables, two models and a reranker, unless it exists."""
    if (folder / "reranker").exists():
        return folder
    folder.mkdir(parents=True)
    for name, size in (("train", PAIRS), ("dev", SENTENCES)):
        for side in ("de", "en"):
            lines = (FOLDER / f"{name}.{side}").read_bytes().split(b"\n")[:size]
            (folder / f"{name}.{side}").write_bytes(b"\n".join(lines) + b"\n")
    (folder / "nbest").write_bytes(b"".join(_first_lines()))
    (folder / "moses.ini").write_bytes((FOLDER / "moses.ini").read_bytes())
    (folder / "lex").write_text("the der 0.5\nthe die 0.5\nhouse Haus 1\n")
    (folder / "arpa").write_text(ARPA)
    (folder / "scores").write_text("0.5\n" * SENTENCES * CANDIDATES)
    train = ["train", "--preset", "rnnsearch", *train_files(folder), "--set", *SMALL, "--output"]
    _run(*train, f"{folder}/forward")
    _run(*train, f"{folder}/backward", "--backward")
    files = [
        "--reference",
        f"{folder}/dev.en",
        "--initial-weights",
        f"{folder}/moses.ini",
        "--output",
        f"{folder}/weights.ini",
    ]
    features = [word for text in FEATURES for word in ("--feature", text.format(folder))]
    _run("score", f"{folder}/nbest", "--source", f"{folder}/dev.de", *features, "--output", f"{folder}/scored")
    _run("tune", f"{folder}/scored", *files)
    requests = parse_requests([text.format(folder) for text in FEATURES])
    write_folder(folder / "reranker", requests, f"{folder}/weights.ini", "")
    return folder


ARPA = """\
\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.0\t<unk>\t0
-1.0\t<s>\t-0.3
-1.0\t</s>\t0
-0.7\tthe\t-0.2

\\2-grams:
-0.5\t<s> the
-0.4\tthe </s>

\\end\\
"""


def train_files(folder: Path) -> list[str]:
    """Return the arguments of `train` that name its files."""
    names = {"--source": "train.de", "--target": "train.en", "--dev-source": "dev.de", "--dev-target": "dev.en"}
    return [word for option, name in names.items() for word in (option, str(folder / name))]


def init_files(valid: Path, but: str = "") -> list[str]:
    """Return the files that `init` needs next to a list, except the file `but`."""
    names = ("dev.de", "dev.en", "train.de", "train.en", "moses.ini")
    return [str(valid / name) for name in names if name != but]


def warm_up(valid: Path, folder: Path) -> None:
    """Load modules and compile code in this process, so forked processes of cases initial quickly."""
    folder.mkdir(exist_ok=True)
    texts = ["--source", f"{valid}/dev.de"]
    models = ["--feature", f"neural:{valid}/forward", "--feature", f"kenlm:{valid}/arpa", "--feature", "consensus:chrf"]
    scored, weights = str(folder / "scored"), str(folder / "weights")
    initial = ["--reference", f"{valid}/dev.en", "--initial-weights", f"{valid}/moses.ini"]
    _run("score", f"{valid}/nbest", *texts, *models, "--output", scored)
    for tuner in ("kbmira", "mert", "pro", "expected", "auto"):
        _run("tune", scored, *initial, "--tuner", tuner, "--output", weights)
    _run("rerank", scored, "--weights", weights, "--output", str(folder / "reranked"))
    _run("evaluate", "--reference", f"{valid}/dev.en", str(folder / "reranked"), f"{valid}/dev.en")


def _first_lines() -> list[bytes]:
    numbers = dict.fromkeys(range(SENTENCES), 0)
    lines = []
    with gzip.open(FOLDER / "dev.nbest.gz") as stream:
        for line in stream:
            sentence = int(line.split(b" ", 1)[0])
            if sentence < SENTENCES and numbers[sentence] < CANDIDATES:
                numbers[sentence] += 1
                lines.append(line)
    return lines


def _run(*arguments: str) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        if main(arguments):
            sys.exit(err.getvalue())
