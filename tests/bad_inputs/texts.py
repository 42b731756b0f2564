"""Wrong and unusual texts as source, reference, translation and training corpus."""

import gzip
from collections.abc import Iterator
from pathlib import Path

from case import ERROR, SUCCESS_OR_ERROR, Case
from valid import SENTENCES, init_files, train_files


def text_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each text and each argument that is a text."""
    good = (valid / "dev.en").read_bytes()
    for name, content in bad_texts(good).items():
        for command, arguments in readers(valid).items():
            yield Case(f"text {name}: {command}", arguments, {"text": content}, statuses=ERROR)
    for name, content in odd_texts(good).items():
        for command, arguments in readers(valid).items():
            yield Case(f"odd text {name}: {command}", arguments, {"text": content}, statuses=SUCCESS_OR_ERROR)
    for name, path in (("zeros", "/dev/zero"), ("folder", "/"), ("nothing", "nowhere"), ("itself", "text")):
        for command, arguments in readers(valid).items():
            yield Case(f"text is {name}: {command}", arguments, {"text": path}, statuses=ERROR)


def readers(valid: Path) -> dict[str, tuple[str, ...]]:
    """Return arguments of every command that reads a text."""
    nbest, out = f"{valid}/nbest", ("--output", "out")
    initial = ("--initial-weights", f"{valid}/moses.ini")
    small = ("--set", "embedding_size=4", "hidden_size=4", "attention_size=4", "updates=2")
    choose = ("--tuner", "auto", "--set", "climbs=1", "--selection", nbest, "--selection-reference", "text")
    corpus = train_files(valid)
    as_target = [*corpus[:3], "text", *corpus[4:]]
    as_dev = [*corpus[:7], "text"]
    train = ("train", "--preset", "rnnsearch", "--device", "cpu", *out, *small)
    return {
        "source of apply": ("apply", f"{valid}/reranker", nbest, "--source", "text", *out),
        "source of score": ("score", nbest, "--source", "text", "--feature", "copied", *out),
        "reference of tune": ("tune", nbest, "--reference", "text", *initial, *out),
        "reference to choose by": ("tune", nbest, "--reference", f"{valid}/dev.en", *initial, *choose, *out),
        "translation": ("evaluate", "text", "--reference", f"{valid}/dev.en"),
        "reference of evaluate": ("evaluate", f"{valid}/dev.en", "--reference", "text"),
        "target of train": (*train, *as_target),
        "dev of train": (*train, *as_dev),
        "corpus of ibm1": (
            "score",
            nbest,
            "--source",
            f"{valid}/dev.de",
            "--feature",
            f"ibm1:{valid}/train.de,text",
            *out,
        ),
        "target of init": ("init", "text", f"{valid}/nbest", *init_files(valid, but="train.en"), *out),
        "reference of init": ("init", "text", f"{valid}/nbest", *init_files(valid, but="dev.en"), *out),
        "scores": ("score", nbest, "--source", f"{valid}/dev.de", "--feature", "scores:text", *out),
    }


def bad_texts(good: bytes) -> dict[str, bytes]:
    """Return texts that every command must reject."""
    return {
        "empty": b"",
        "one line": good.split(b"\n")[0] + b"\n",
        "cut gzip": gzip.compress(good)[:-12],
        "bomb": gzip.compress(b"a " * 25_000_000),
        "line of 12 MB": good + b"x" * 12_000_000,
    }


def odd_texts(good: bytes) -> dict[str, bytes]:
    """Return unusual texts, which commands may accept or reject."""
    return {
        "blank lines": b"\n" * SENTENCES,
        "blanks": b"   \n" * SENTENCES,
        "NUL": good.replace(b" ", b" \0 "),
        "not UTF-8": good.replace(b"e", b"\xfe"),
        "UTF-16": good.decode().encode("utf-16"),
        "controls": good.replace(b"e", b"\x1b[31m\x07"),
        "line separators": good.replace(b" ", "\u2028".encode()),
        "no-break spaces": good.replace(b" ", "\u00a0".encode()),
        "marks": good.replace(b" the ", b" the |0-1| "),
        "one long word": b"x" * 100_000 + b"\n" + good.split(b"\n", 1)[1],
        "long line": b"x " * 3000 + b"\n" + good.split(b"\n", 1)[1],
        "CR": good.replace(b"\n", b"\r"),
        "numbers": b"1e400\n" * 72,
        "many numbers": b"1 2 3\n" * 72,
        "numbers of 5000 digits": b"9" * 5000 + b"\n" + b"1\n" * 71,
    }
