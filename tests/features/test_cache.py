"""The cache of model scores."""

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from features.cache import AT_ONCE, FILE, Cache, Journal
from features.feature import Sentence
from features.groups import Group
from features.request import parse_requests
from moses_io.files.errors import InputError
from moses_io.files.streams import open_output
from moses_io.nbest import read_hypotheses
from rerank.reranker.folder import write_folder

Command = Callable[..., tuple[int, bytes, str]]


def test_stored_values_are_returned_unchanged(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "new" / "cache"))
    values = {number.to_bytes(16, "big"): bytes(range(number % 7, 8)) for number in range(2 * AT_ONCE + 1)}
    assert cache.get(list(values)) == {}
    cache.store(values)
    again = Cache(str(tmp_path / "new" / "cache"))
    assert again.get([*values, b"another"]) == values
    again.store({b"another": b"1"})
    assert cache.get([b"another"]) == {b"another": b"1"}


def test_a_file_or_folder_that_is_not_a_cache_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("some text, which is longer than the head of a database" * 9)
    with pytest.raises(InputError, match=f"{FILE}: not a usable cache of scores"):
        Cache(str(tmp_path))
    (tmp_path / FILE).unlink()
    for make in (os.mkdir, os.mkfifo):
        make(tmp_path / "other")
        (tmp_path / "other").rename(tmp_path / FILE)
        with pytest.raises(InputError, match=f"{FILE}: not a usable cache of scores"):
            Cache(str(tmp_path))
        (tmp_path / FILE).rename(tmp_path / make.__name__)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        Cache(str(tmp_path / "file"))


@pytest.mark.parametrize(
    "damage",
    [
        "value = x''",
        "value = substr(value, 2)",
        "value = CAST(value || x'00' AS BLOB)",
        "value = 'text of twelve'",
        "value = 12",
        "value = NULL",
        "value = CAST(x'00' || substr(value, 2) AS BLOB)",
        "key = x'6f74686572'",
    ],
)
def test_damaged_entries_are_ignored(tmp_path: Path, damage: str) -> None:
    cache = Cache(str(tmp_path))
    cache.store({b"key": b"\x01 values", b"another": b"\x02 values"})
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute(f"UPDATE scores SET {damage} WHERE key = ?", (b"key",))
    database.close()
    assert cache.get([b"key", b"other", b"another"]) == {b"another": b"\x02 values"}


def test_the_command_score_uses_the_cache(
    command: Command, sample: Path, models: dict[str, Path], tmp_path: Path
) -> None:
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
    with sqlite3.connect(tmp_path / "cache" / FILE) as database:
        database.execute("UPDATE scores SET value = substr(value, 2)")
    assert command(*arguments, *resources)[1] == first
    with sqlite3.connect(tmp_path / "cache" / FILE) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM scores")]
    Cache(str(tmp_path / "cache")).store(dict.fromkeys(keys, b"no number"))
    assert command(*arguments, *resources)[1] == first


def test_cached_values_depend_on_how_links_are_numbered(tmp_path: Path) -> None:
    sentence = Sentence(0, ("x",), (("a",),), counts_bos_eos=True)
    journal, values = Journal(str(tmp_path), {"L": "links"}), {"L": np.array([[0.5]])}
    journal.store(Group([sentence], np.array([0])), values)
    assert journal.values(Group([sentence], np.array([0]))) == values
    for other in (False, None):
        assert journal.values(Group([replace(sentence, counts_bos_eos=other)], np.array([0]))) is None


@pytest.fixture
def small_cache(command: Command, small: Callable[..., Path], models: dict[str, Path]) -> Path:
    """A folder with lists, and a cache in which each candidate has the log-probability -1.5."""
    folder = small(pairs=5, sentences=5, candidates=3)
    for name in ("dev", "test"):
        score = ("score", folder / f"{name}.nbest", "--source", folder / f"{name}.de", "--output", folder / "scored")
        options = ("--feature", f"N=neural:{models['forward']}", "--device", "cpu", "--cache", folder / "cache")
        assert command(*score, *options)[0] == 0
    with sqlite3.connect(folder / "cache" / FILE) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM scores")]
    database.close()
    Cache(str(folder / "cache")).store(dict.fromkeys(keys, np.float64(-1.5).tobytes()))
    return folder


def scores_of(path: Path) -> set[tuple[float, ...]]:
    """Return the different values of the feature N in a list."""
    return {dict(hypothesis.dense)["N"] for hypothesis in read_hypotheses(str(path))}


def test_apply_takes_scores_from_the_cache(
    command: Command, small_cache: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    weights = tmp_path / "weights.ini"
    weights.write_text((small_cache / "moses.ini").read_text() + "N= 0.1\n")
    write_folder(tmp_path / "reranker", parse_requests([f"N=neural:{models['forward']}"]), str(weights), "")
    apply = ("apply", tmp_path / "reranker", small_cache / "test.nbest", "--source", small_cache / "test.de")
    options = ("--device", "cpu", "--nbest", tmp_path / "best")
    for cache, cached in ((("--cache", small_cache / "cache"), True), ((), False)):
        status, _, err = command(*apply, *options, *cache)
        assert status == 0, err
        assert (scores_of(tmp_path / "best") == {(-1.5,)}) == cached


def test_run_takes_scores_from_the_cache(command: Command, small_cache: Path, models: dict[str, Path]) -> None:
    experiment = small_cache / "experiment.toml"
    sets = {
        name: f'{{ source = "{name}.de", reference = "{name}.en", nbest = "{name}.nbest" }}' for name in ("dev", "test")
    }
    experiment.write_text(
        'output = "work"\ninitial_weights = "moses.ini"\ntrain = { source = "train.de", target = "train.en" }\n'
        f'dev = {sets["dev"]}\ntest = {sets["test"]}\n[features]\nN = "neural:{models["forward"]}"\n'
        '[tuning]\ntuner = "kbmira"\niterations = 1\nruns = 1\nfolds = 0\n[report]\nablation = false\n'
    )
    status, _, err = command("run", experiment, "--device", "cpu", "--cache", small_cache / "cache")
    assert status == 0, err
    for name in ("dev", "test"):
        assert scores_of(small_cache / "work" / f"{name}.nbest.gz") == {(-1.5,)}
