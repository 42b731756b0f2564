"""Scoring on a cluster gives the same bytes as one process, even if workers die."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from features.feature_set import FeatureSet
from rerank.lists import scoring

Command = Callable[..., tuple[int, bytes, str]]

pytestmark = pytest.mark.slow

DEADLY = """\
import os, signal
from pathlib import Path
import numpy as np


class Deadly:
    \"\"\"Length of a candidate.

    The process kills itself at sentence 20, as often as the number in the file of its argument.
    \"\"\"

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
    command: Command, folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> Callable[..., tuple[int, bytes, str]]:
    """Return a function that scores the small list, ten sentences at a time, with a given number of worker deaths."""
    monkeypatch.setattr(scoring, "BATCH", 200)
    Path("deadly.py").write_text(DEADLY)
    lines = Path("dev.nbest").read_text().count("\n")
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
        return command("score", "dev.nbest", "--source", "dev.de", *features, "--device", "cpu", *options)

    return run


def test_killed_workers_do_not_change_the_output(score: Command, cluster: str) -> None:
    """Workers die during a task. Values of features are in the order of the requests."""
    status, alone, err = score()
    assert status == 0
    messages = [line for line in err.splitlines() if not line.startswith("score: ")]
    status, by_cluster, err = score("--ray", cluster, deaths=2)
    assert (status, Path("deaths").read_text()) == (0, "0"), err
    assert by_cluster == alone
    died = ["ray: a worker died. Another does its work"] * 2
    lines = [line for line in err.splitlines() if not line.startswith("score: ")]
    assert lines == ["ray: up to 2 workers with 1 thread each", *messages, *died]


def test_repeated_worker_deaths_are_an_error_and_scores_are_kept(
    score: Command, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later run in one process resumes with the stored scores of models."""
    whole = score()[1]
    status, out, err = score("--ray", cluster, "--output", "scored", deaths=100)
    assert (status, out) == (2, b"")
    assert err.splitlines()[-1].startswith("moses-rerank score: --ray: 4 workers died in a row")
    assert (Path("deaths").read_text(), Path("scored").exists()) == ("96", False)
    read, groups = FeatureSet.values_of_models, []
    monkeypatch.setattr(FeatureSet, "values_of_models", lambda self, group: groups.append(group) or read(self, group))
    assert score("--output", "scored")[0] == 0
    assert Path("scored").read_bytes() == whole
    rescored = len(groups)
    assert score("--output", "new")[0] == 0
    assert rescored < len(groups) - rescored


def test_errors_of_workers_equal_those_of_one_process(command: Command, folder: Path, cluster: str) -> None:
    for request in ("neural:nowhere", "command:exit 3"):
        arguments = ("score", "dev.nbest", "--source", "dev.de", "--feature", request, "--output", "out")
        alone, by_cluster = command(*arguments), command(*arguments, "--ray", cluster)
        assert alone[0] == by_cluster[0] == 2
        assert by_cluster[2].splitlines()[-1] == alone[2].splitlines()[-1]
        assert not Path("out").exists()


def test_a_table_that_does_not_match_the_list_is_reported(command: Command, folder: Path, cluster: str) -> None:
    Path("lex.f2e").write_text("x y 0.5\n")
    arguments = ("score", "dev.nbest", "--source", "dev.de", "--feature", "lexical:lex.f2e", "--output", "out")
    errors = [command(*arguments, *options)[2].splitlines()[-1] for options in ((), ("--ray", cluster))]
    assert "checked words of the list has an entry with a word of the other side" in errors[0]
    assert errors[1] == errors[0]


def test_candidates_are_verified_by_workers(
    command: Command, folder: Path, cluster: str, models: dict[str, Path]
) -> None:
    arguments = ("score", "dev.nbest", "--source", "dev.de", "--device", "cpu", "--verify", "5")
    status, _, err = command(*arguments, "--feature", f"A=neural:{models['forward']}", "--ray", cluster)
    assert status == 0
    assert err.splitlines()[-1].startswith("A: 5 candidates scored one by one differ by at most ")


def test_auto_starts_a_cluster_that_ends_with_the_command(
    folder: Path, until: Callable[[Callable[[], bool]], None]
) -> None:
    """Ray writes nothing to stdout, and none of its processes remain."""
    arguments = ("score", "dev.nbest", "--source", "dev.de", "--feature", "length")
    command = (sys.executable, "-m", "rerank.cli", *arguments)
    with tempfile.TemporaryDirectory(prefix="r") as directory:  # a short path, because paths of sockets are limited
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "RAY_TMPDIR": directory}
        environment.pop("RAY_ADDRESS", None)
        alone, by_cluster = (
            subprocess.run([*command, *more], env=environment, capture_output=True, check=True)
            for more in ((), ("--ray", "auto"))
        )
        assert by_cluster.stdout == alone.stdout
        first, *others = by_cluster.stderr.decode().splitlines()
        assert re.fullmatch(r"ray: up to \d+ workers? with \d+ threads? each", first)
        assert [line for line in others if not line.startswith("score: ")] == alone.stderr.decode().splitlines()
        until(lambda: not any(belongs_to(path, directory) for path in Path("/proc").glob("[0-9]*")))


def belongs_to(process: Path, directory: str) -> bool:
    """Return whether a process was started by a command with this directory for its cluster."""
    try:
        return f"RAY_TMPDIR={directory}\0".encode() in (process / "environ").read_bytes()
    except OSError:
        return False
