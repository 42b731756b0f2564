"""Comparison with the results of the Moses tuning tools on the same files."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.weights import read_weights
from rerank.metrics.metric import Metric
from rerank.tuners.moses import BUCKETS, seen_by_kbmira
from rerank.tuners.problem import Problem
from rerank.tuners.table import run
from rerank.tuning.tune import make_tuning
from rerank.tuning.tuning_set import Extracted

Command = Callable[..., tuple[int, bytes, str]]
LISTS = ("sample-moses", "sample-neural", "multi30k-neural")


def load(folder: Path, part: str) -> Problem:
    files = [str(folder / f"{part}.{kind}.dat.gz") for kind in ("features", "scores")]
    found = Extracted(*files).read(Metric("bleu"))
    initial = found.candidates.space.vector(read_weights(str(folder / "init.dense")))
    return Problem(found.candidates, found.statistics, Metric("bleu").formula, initial)


@pytest.mark.parametrize("name", LISTS)
def test_weights_and_bleu_of_moses(data: Path, name: str) -> None:
    folder = data / "tuning" / name
    dev, test = load(folder, "dev"), load(folder, "test")
    rows = json.loads((folder / "moses-tools.json").read_text())["rows"]
    for row in rows:
        assert dev.measure(np.array(row["weights"])) == pytest.approx(row["dev"], abs=1e-6)
        assert test.measure(np.array(row["weights"])) == pytest.approx(row["test"], abs=1e-6)
    (wanted,) = [row for row in rows if row["tool"] == "kbmira --no-shuffle"]
    tuned = run(dev, make_tuning({"parity": "moses"}))
    np.testing.assert_allclose(tuned.weights, wanted["weights"], atol=1e-5)
    ours = run(dev, make_tuning({"runs": 1}))
    assert ours.metric > tuned.metric  # all candidates are used


def test_moses_parity_uses_one_candidate_per_hash_bucket(data: Path) -> None:
    candidates = load(data / "tuning" / "sample-moses", "dev").candidates
    seen = seen_by_kbmira(candidates)
    counts = np.diff(np.searchsorted(seen, candidates.offsets))
    assert counts.max() == BUCKETS
    assert set(candidates.offsets[:-1]) <= set(seen)


def test_tune_reads_the_files_of_the_moses_extractor(command: Command, data: Path, tmp_path: Path) -> None:
    folder = data / "tuning" / "sample-moses"
    files = ("--extractor-features", folder / "dev.features.dat.gz", "--extractor-scores", folder / "dev.scores.dat.gz")
    status, out, err = command("tune", *files, "--initial-weights", folder / "init.dense", "--parity", "moses")
    assert status == 0 and "parity:moses" in err
    (tmp_path / "w").write_bytes(out)
    found = read_weights(str(tmp_path / "w"))
    assert found["LM0"] == pytest.approx((1.64228,), abs=1e-4)
    assert len(found["LexicalReordering0"]) == 6
    assert command("tune", *files[:2], "--initial-weights", folder / "init.dense")[0] == 2
