"""Arguments out of range, unknown names, outputs that cannot be written, and files of Moses' extractor."""

from collections.abc import Iterator
from pathlib import Path

from case import Case, read_lines
from valid import train_files


def setting_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each wrong argument, output and file of Moses' extractor."""
    nbest, reference = f"{valid}/nbest", ("--reference", f"{valid}/dev.en")
    tune = ("tune", nbest, *reference, "--initial-weights", f"{valid}/moses.ini", "--output", "out")
    for text, statuses in read_lines("tune"):
        yield Case(f"tune {text[:60]}", (*tune, *text.split(" ")), statuses=statuses)
    train = ("train", "--preset", "rnnsearch", "--device", "cpu", *train_files(valid), "--output", "out")
    for text, statuses in read_lines("train"):
        small = () if "hidden" in text or "layers" in text else ("hidden_size=4",)
        arguments = (*train, "--set", "epochs=1", "attention_size=4", *small, *text.split(" "))
        yield Case(f"train {text[:60]}", arguments, statuses=statuses)
    common = {
        "train": train[1:],
        "explain": (nbest, "--weights", f"{valid}/moses.ini", "--sentence", "0"),
        "rerank": (nbest, "--weights", f"{valid}/moses.ini", "--output", "out"),
        "evaluate": (f"{valid}/dev.en", *reference),
        "score": (nbest, "--source", f"{valid}/dev.de", "--feature", "length", "--output", "out"),
        "validate": (nbest,),
        "retune": _retune(valid),
    }
    for text, statuses in read_lines("commands"):
        command, *rest = text.split(" ")
        yield Case(text, (command, *common.get(command, ()), *rest), statuses=statuses)
    yield from _outputs(valid)
    yield from _extractor(valid)


def _retune(valid: Path) -> tuple[str, ...]:
    """Return arguments of `retune` with a decoder that fails."""
    corpus = ("--corpus", f"{valid}/train", "--f", "de", "--e", "en")
    tuned = (f"{valid}/dev.de", f"{valid}/dev.en", "/bin/false", f"{valid}/moses.ini")
    return (*tuned, *corpus, "--working-dir", "work")


def _outputs(valid: Path) -> Iterator[Case]:
    """Yield cases of outputs that cannot be written or must not be overwritten."""
    score = ("score", f"{valid}/nbest", "--source", f"{valid}/dev.de", "--feature", "length")
    rerank = ("rerank", "list", "--weights", "ini")
    files = {"list": (valid / "nbest").read_bytes(), "ini": (valid / "moses.ini").read_bytes(), "link": "list"}
    for name, path in (
        ("full", "/dev/full"),
        ("folder", "."),
        ("nowhere", "no/where"),
        ("long", "x" * 300),
        ("NUL", "a\0b"),
    ):
        yield Case(f"output {name}: score", (*score, "--output", path))
        yield Case(f"output {name}: rerank", (*rerank, "--output", path), files)
    for name in ("list", "link", "ini"):
        yield Case(f"output is {name}", (*rerank, "--output", name), files)
        yield Case(f"list of output is {name}", (*rerank, "--nbest", name, "--output", "out"), files)
    yield Case("two outputs of one name", (*rerank, "--nbest", "both", "--output", "both"), files)
    yield Case("nothing on stdin", ("rerank", "-", "--weights", f"{valid}/moses.ini", "--sentences", "3"))
    yield Case("rubbish on stdin", ("validate", "-"), stdin=bytes(range(256)))


def _extractor(valid: Path) -> Iterator[Case]:
    """Yield cases of faulty files of Moses' extractor."""
    features = b"FEATURES_TXT_BEGIN_0 0 2 2 a b\n1 2\n3 4\nFEATURES_TXT_END_0\n"
    scores = b"SCORES_TXT_BEGIN_0 0 2 9 BLEU\n1 2 1 2 1 2 1 2 3\n1 2 1 2 1 2 1 2 3\nSCORES_TXT_END_0\n"
    mutated = {
        "empty": b"",
        "cut": features[:-25],
        "no head": b"1 2\n",
        "letters": features.replace(b"3", b"x"),
        "nan": features.replace(b"3", b"nan"),
        "1e400": features.replace(b"3", b"1e400"),
        "binary": b"FEATURES_BIN_BEGIN_0 0 2 2 a b\n\0\1",
        "count of 10^15": features.replace(b" 0 2 2 ", b" 0 1000000000000000 2 "),
        "width of 10^15": features.replace(b" 0 2 2 ", b" 0 2 1000000000000000 "),
        "count of 5000 digits": features.replace(b" 0 2 2 ", b" 0 " + b"9" * 5000 + b" 2 "),
        "no count": features.replace(b" 0 2 2 ", b" "),
        "controls": b"\x1b[31m" + features,
    }
    for name, content in mutated.items():
        files = {"features": content, "scores": scores, "dense": b"a 1\nb 1\n"}
        arguments = (
            "tune",
            "--extractor-features",
            "features",
            "--extractor-scores",
            "scores",
            "--initial-weights",
            "dense",
            "--output",
            "out",
        )
        yield Case(f"extractor {name}", arguments, files)
        files["features"], files["scores"] = features, content.replace(b"FEATURES", b"SCORES")
        yield Case(f"extractor's scores {name}", arguments, files)
