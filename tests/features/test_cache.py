"""Scores that were kept."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from features.cache import FILE, Cached
from features.feature import Array, Candidates
from moses_io.errors import InputError
from moses_io.nbest import read_hypotheses
from moses_io.streams import open_output

Command = Callable[..., tuple[int, bytes, str]]
SENTENCES = [
    Candidates(0, ("a", "b"), (("x",), ("x", "y"), ("x",))),
    Candidates(1, ("a",), (("x",), (), ("\udce4", "z"))),
]


class Counting:
    """A stand-in for a model: two values a candidate, and what it was asked for."""

    def __init__(self, signature: str = "counting") -> None:
        self.signature, self.steps, self.asked = signature, (0, 0), 0

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        self.asked += len(pairs)
        return np.array([[len(source) / 3, -len(text) / 7] for source, text in pairs])

    alone = __call__


def cached(folder: Path, signature: str = "counting") -> tuple[Cached, Counting]:
    feature = Counting(signature)
    return Cached(feature, str(folder)), feature  # type: ignore[arg-type]


def test_only_what_is_new_is_scored(tmp_path: Path) -> None:
    feature, inner = cached(tmp_path / "new" / "cache")
    wanted = Counting()(SENTENCES)
    for _ in range(2):
        assert np.array_equal(feature(SENTENCES), wanted)
        assert inner.asked == 6
    later, other = cached(tmp_path / "new" / "cache")
    more = [replace(SENTENCES[0], hypotheses=(("new",), *SENTENCES[0].hypotheses)), *SENTENCES]
    assert np.array_equal(later(more), Counting()(more))
    assert other.asked == 1


def test_content_and_settings_and_source_keep_scores_apart(tmp_path: Path) -> None:
    cached(tmp_path)[0](SENTENCES)
    feature, inner = cached(tmp_path, "counting|precision:bf16")
    feature(SENTENCES)
    assert inner.asked == 6
    feature([replace(SENTENCES[0], source=("a", "c"))])
    assert inner.asked == 9


def test_what_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("some text, which is longer than the head of a database" * 9)
    with pytest.raises(InputError, match=f"{FILE}: not a usable cache of scores"):
        cached(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        cached(tmp_path / "file")


def test_the_command_keeps_scores(command: Command, sample: Path, models: dict[str, Path], tmp_path: Path) -> None:
    nbest = tmp_path / "part.nbest"
    with open_output(str(nbest)) as stream:
        stream.writelines(hypothesis.line for hypothesis in list(read_hypotheses(str(sample / "dev.nbest.gz")))[:60])
    arguments = ("score", nbest, "--source", sample / "dev.de", "--feature", f"N=neural:{models['forward']}")
    resources = ("--device", "cpu", "--cache", tmp_path / "cache")
    status, first, _ = command(*arguments, *resources)
    assert status == 0 and first == command(*arguments, "--device", "cpu")[1]
    with sqlite3.connect(tmp_path / "cache" / FILE) as database:
        (count,) = database.execute("SELECT count(*) FROM scores").fetchone()
    assert 0 < count <= 60
    assert command(*arguments, *resources)[1] == first
