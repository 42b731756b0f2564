"""Scoring on a cluster gives the bytes of one process, whatever dies."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from features.feature_set import FeatureSet
from rerank import scoring

Command = Callable[..., tuple[int, bytes, str]]

pytestmark = pytest.mark.slow

DEADLY = """\
import os, signal
from pathlib import Path
import numpy as np


class Deadly:
    \"\"\"The length; where the file of its argument says so, its process dies that many times.\"\"\"

    def __init__(self, argument, resources):
        self.signature, self.deaths = "deadly", Path(argument)

    def __call__(self, sentences):
        deaths = int(self.deaths.read_text())
        if deaths and sentences[0].sentence == 20:
            self.deaths.write_text(str(deaths - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return np.array([[float(len(words))] for each in sentences for words in each.hypotheses])
"""


@pytest.fixture
def score(
    command: Command, small: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, bytes, str]]:
    """Score the small list with models and others, ten sentences at a time, with so many deaths in the middle of it."""
    monkeypatch.chdir(small)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(scoring, "BATCH", 900)
    Path("deadly.py").write_text(DEADLY)
    lines = Path("nbest").read_text().count("\n")
    Path("numbers").write_text("".join(f"{line}\n" for line in range(lines)))
    requests = [
        f"Own=neural:{models['forward']}[logprob,coverage]",
        "Other=scores:numbers",
        f"Back=neural:{models['backward']}",
        "Both=agreement:{forward},{backward}".format(**models),
        "Deadly=deadly:Deadly:deaths",
        "consensus:bleu",
    ]
    features = [part for request in requests for part in ("--feature", request)]

    def run(*options: object, deaths: int = 0) -> tuple[int, bytes, str]:
        Path("deaths").write_text(str(deaths))
        return command("score", "nbest", "--source", "source", *features, "--device", "cpu", *options)

    return run


def test_killed_workers_change_no_byte(score: Command, cluster: str) -> None:
    """Killed in the middle of a piece; values of models, words and lists stand in the order of the requests."""
    status, alone, err = score()
    assert status == 0
    told = err.splitlines()
    status, by_cluster, err = score("--ray", cluster, deaths=2)
    assert (status, Path("deaths").read_text()) == (0, "0"), err
    assert by_cluster == alone
    died = ["ray: a worker died; another does its work"] * 2
    assert err.splitlines() == ["ray: up to 2 workers with 1 thread each", *told, *died]


def test_what_kills_every_worker_ends_in_one_line(score: Command, cluster: str) -> None:
    status, out, err = score("--ray", cluster, "--output", "scored", deaths=100)
    assert (status, out) == (2, b"")
    assert err.splitlines()[-1].startswith("moses-rerank score: --ray: 4 workers died one after the other")
    assert not Path("scored").exists()
    assert Path("deaths").read_text() == "96"


def test_a_journal_serves_both(score: Command, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed scoring on a cluster kept of models is not scored again by one process."""
    whole = score()[1]
    assert score("--ray", cluster, "--output", "scored", deaths=100)[0] == 2
    assert Path(".scored.scored").is_dir()
    read, groups = FeatureSet.read, []
    monkeypatch.setattr(FeatureSet, "read", lambda self, group: groups.append(group) or read(self, group))
    assert score("--output", "scored")[0] == 0
    assert Path("scored").read_bytes() == whole
    rescored = len(groups)
    assert score("--output", "new")[0] == 0
    assert rescored < len(groups) - rescored


def test_faults_of_workers_are_those_of_one_process(
    command: Command, small: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small)
    for request in ("neural:nowhere", "command:exit 3"):
        arguments = ("score", "nbest", "--source", "source", "--feature", request, "--output", "out")
        alone, by_cluster = command(*arguments), command(*arguments, "--ray", cluster)
        assert alone[0] == by_cluster[0] == 2
        assert by_cluster[2].splitlines()[-1] == alone[2].splitlines()[-1]
        assert not Path("out").exists()


def test_candidates_are_verified_by_workers(
    command: Command, small: Path, cluster: str, models: dict[str, Path]
) -> None:
    arguments = ("score", small / "nbest", "--source", small / "source", "--device", "cpu", "--verify", "5")
    status, _, err = command(*arguments, "--feature", f"A=neural:{models['forward']}", "--ray", cluster)
    assert status == 0
    assert err.splitlines()[-1].startswith("A: 5 candidates scored one by one differ by at most ")


def test_auto_starts_a_cluster_that_ends_with_the_command(
    command: Command, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(small)
    arguments = ("score", "nbest", "--source", "source", "--feature", "length")
    before = children()
    alone, by_cluster = command(*arguments), command(*arguments, "--ray", "auto")
    assert by_cluster[:2] == alone[:2]
    assert [line for line in by_cluster[2].splitlines() if not line.startswith("ray: up to ")] == alone[2].splitlines()
    assert children() <= before


def children() -> set[str]:
    """Processes that this one has started and that are still there."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
