"""The sample, cut so that looking at it takes a moment."""

import gzip
from itertools import groupby, islice
from pathlib import Path

import pytest

SENTENCES, CANDIDATES, PAIRS = 120, 3, 400


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> dict[str, bytes]:
    """The contents of the files that an experiment needs, by their names in the sample."""
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
    contents["lm.arpa"] = arpa(contents["train.en"])
    return contents


def arpa(text: bytes) -> bytes:
    """A model of the words of a text, all alike."""
    words = sorted({word for word in text.split() if word})
    unigrams = b"".join(b"-3\t%s\n" % word for word in (b"<unk>", b"<s>", b"</s>", *words))
    return b"\n\\data\\\nngram 1=%d\n\n\\1-grams:\n%s\n\\end\\\n" % (len(words) + 3, unigrams)
