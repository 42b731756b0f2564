from collections.abc import Callable
from pathlib import Path

import pytest

from features.models.training.request import ParallelFiles
from moses_io.errors import InputError
from rerank.experiment.corpus import Corpus, Side, look_at

Write = Callable[[str, "str | bytes"], Path]


def parallel(write: Write, name: str, source: str, target: str) -> ParallelFiles:
    return ParallelFiles(source=str(write(f"{name}.de", source)), target=str(write(f"{name}.en", target)))


def test_words_that_dev_has_and_training_hardly_has_are_unknown(write: Write) -> None:
    train = parallel(write, "train", "a b a\nb\u00a0c a\n", "x y\nx y y z\n")
    dev = parallel(write, "dev", "a b c\na\n", "x\nz\n")
    source, target = (
        Side(words=5, vocabulary=1, letters=4, unknown=0.5),
        Side(words=6, vocabulary=2, letters=3, unknown=0.5),
    )
    assert look_at(train, dev) == Corpus(pairs=2, dev=2, source=source, target=target)


def test_the_sample(sample: Path) -> None:
    train, dev = (
        ParallelFiles(source=f"{sample}/{name}.de", target=f"{sample}/{name}.en") for name in ("train", "dev")
    )
    corpus = look_at(train, dev)
    assert (corpus.pairs, corpus.dev, corpus.source.words, corpus.target.words) == (6000, 400, 62623, 62670)
    assert max(corpus.source.unknown, corpus.target.unknown) < 0.03


def test_texts_that_cannot_be_looked_at(write: Write) -> None:
    dev = parallel(write, "dev", "a\n", "x\n")
    with pytest.raises(InputError, match=r"train\.en has 2 lines, .*train\.de has 1"):
        look_at(parallel(write, "train", "a\n", "x\nx\n"), dev)
    with pytest.raises(InputError, match="/dev/zero: a pipe or a device, expected a plain file"):
        look_at(ParallelFiles(source="/dev/zero", target=dev.target), dev)
