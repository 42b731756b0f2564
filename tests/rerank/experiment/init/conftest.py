"""Small versions of the sample files, so that `init` inspects them quickly."""

import gzip
from collections.abc import Callable
from itertools import groupby, islice
from pathlib import Path

import pytest

SENTENCES, CANDIDATES, PAIRS = 120, 3, 400


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> dict[str, bytes]:
    """Contents of the files that an experiment needs, by their names in the sample."""
    sizes = {"dev": SENTENCES, "test": SENTENCES, "train": PAIRS}
    contents = {
        f"{name}.{side}": b"".join((sample / f"{name}.{side}").read_bytes().splitlines(True)[:size])
        for name, size in sizes.items()
        for side in ("de", "en")
    }
    for name in ("dev", "test"):
        with gzip.open(sample / f"{name}.nbest.gz") as stream:
            sentences = groupby(stream, key=lambda line: line.split(b" ", 1)[0])
            few = [line for _, lines in islice(sentences, SENTENCES) for line in islice(lines, CANDIDATES)]
        contents[f"{name}.nbest"] = b"".join(few)
    contents["moses.ini"] = (sample / "moses.ini").read_bytes()
    contents["lm.arpa"] = _arpa(contents["train.en"])
    return contents


@pytest.fixture(scope="session")
def arpa() -> Callable[..., bytes]:
    """Make an ARPA model that gives all words of a text one score, and words of another language a lower one."""
    return _arpa


def _arpa(text: bytes, foreign: bytes = b"") -> bytes:
    words = dict.fromkeys(foreign.split(), b"-6") | dict.fromkeys([b"<unk>", *text.split()], b"-2")
    unigrams = b"".join(b"%s\t%s\t-0.1\n" % (value, word) for word, value in words.items())
    return b"\n\\data\\\nngram 1=%d\n\n\\1-grams:\n%s\n\\2-grams:\n-1\tder die\n\n\\end\\\n" % (len(words), unigrams)
