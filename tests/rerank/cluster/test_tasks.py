"""Training and stages on a cluster give the results of local workers, even if workers die."""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from features.progress import log
from moses_io.files.errors import InputError
from moses_io.files.streams import open_output
from rerank.experiment.workers import TERMINATION_TIMEOUT, do_all, workers

Command = Callable[..., tuple[int, bytes, str]]
Until = Callable[[Callable[[], bool]], None]

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with texts and lists for training and tuning in a few seconds."""
    monkeypatch.chdir(small(pairs=150, sentences=20, candidates=10))
    return Path.cwd()


def meet(mine: Path, other: Path) -> None:
    """Return when another process runs at the same time, or fail after a minute."""
    mine.write_text(os.environ["OMP_NUM_THREADS"])
    for _ in range(600):
        if other.exists():
            log.info("met")
            return
        time.sleep(0.1)
    raise InputError("nobody came")


def fail(reason: str) -> None:
    if not reason:
        raise ValueError("a fault of ours")
    raise InputError(reason)


def fill() -> None:
    raise OSError(28, "No space left on device", "/dev/full")


def die(deaths: Path) -> None:
    """Record the attempt and kill this process."""
    with deaths.open("a") as stream:
        stream.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def linger(folder: Path) -> None:
    with open_output(str(folder / "whole")):
        (folder / "begun").write_text(str(os.getpid()))
        for _ in range(600):
            time.sleep(0.1)


@pytest.mark.usefixtures("progress")
def test_two_tasks_run_at_a_time(
    tmp_path: Path, cluster: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one, two = tmp_path / "one", tmp_path / "two"
    actions = {"first": partial(meet, one, two), "second": partial(meet, two, one), "third": partial(meet, one, two)}
    do_all(actions, 3, cluster)
    assert sorted(capfd.readouterr().err.splitlines()) == ["first: met", "second: met", "third: met"]
    assert one.read_text() == "1"


def test_errors_contain_the_name_of_the_task(tmp_path: Path, cluster: str, capfd: pytest.CaptureFixture[str]) -> None:
    with workers(9, cluster) as pool:
        assert (pool.jobs, pool.free) == (2, True)
        pool.start("bad", partial(fail, "no such thing"))
        with pytest.raises(InputError, match=r"^bad: no such thing$"):
            pool.wait()
        pool.start("full", fill)
        with pytest.raises(InputError, match=r"^full: /dev/full: No space left on device$"):
            pool.wait()
        pool.start("broken", partial(fail, ""))
        with pytest.raises(InputError, match=r"^broken: ended with ValueError$"):
            pool.wait()
        pool.start("deadly", partial(die, tmp_path / "deaths"))
        with pytest.raises(InputError, match=r"^deadly: its worker died 4 times"):
            pool.wait()
    assert (tmp_path / "deaths").read_text() == "xxxx"
    assert "a fault of ours" in capfd.readouterr().err


def test_running_tasks_stop_at_the_end_of_the_block(tmp_path: Path, cluster: str, until: Until) -> None:
    """The task stops itself at once."""
    with workers(2, cluster) as pool:
        pool.start("long", partial(linger, tmp_path))
        until((tmp_path / "begun").exists)
        pool.start("bad", partial(fail, "no such thing"))
        with pytest.raises(InputError, match=r"^bad: no such thing$"):
            pool.wait()
        begun = time.monotonic()
    assert time.monotonic() - begun < TERMINATION_TIMEOUT
    names = {path.name for path in tmp_path.iterdir()}
    # Temporary files are removed by the next run.
    assert {name for name in names if not name.endswith(".temporary")} == {"begun"}


def with_a_killed_worker(command: Command, pattern: str, *arguments: object) -> str:
    """Run a command, kill one of its workers as soon as a file of this pattern exists, and return its messages.

    If no worker was found in time, all is repeated.
    """
    for _ in range(5):
        shutil.rmtree("work", ignore_errors=True)
        killed, ended = list[int](), threading.Event()
        thread = threading.Thread(target=kill_one, args=(Path.cwd(), pattern, killed, ended))
        thread.start()
        status, _, err = command(*arguments)
        ended.set()
        thread.join()
        assert status == 0, err
        if killed:
            return err
    raise AssertionError("no worker was killed")


def kill_one(folder: Path, pattern: str, killed: list[int], ended: threading.Event) -> None:
    while not ended.is_set() and not killed:
        working = [path for path in Path("/proc").glob("[0-9]*") if is_working(path)]
        if working and any(folder.glob(pattern)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(working[0].name), signal.SIGKILL)
                killed.append(int(working[0].name))
        time.sleep(0.05)


def is_working(process: Path) -> bool:
    try:
        return (process / "cmdline").read_bytes().startswith(b"ray::_perform")
    except OSError:
        return False


TINY = "embedding_size = 16, hidden_size = 16, attention_size = 16, epochs = 6, batch_size = 16, learning_rate = 0.01"
EXPERIMENT = f"""\
output = "work"
initial_weights = "moses.ini"
train = {{ source = "train.de", target = "train.en" }}
dev = {{ source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }}

[models]
forward = {{ preset = "cohn-align", {TINY} }}

[features]
NMT = "neural:forward"

[tuning]
tuner = "kbmira"
iterations = 2
"""


def results(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files that contain no times."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".jsonl", ".lock")]
    names = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    timed = ("stages.json", "reranker.json", "reranker/README.md")  # with times, or digests of files with times
    return {name: content for name, content in names.items() if not name.endswith(timed)}


@pytest.mark.usefixtures("one_thread", "folder")
def test_run_with_a_killed_worker_equals_a_local_run(command: Command, cluster: str) -> None:
    """The worker is killed during a training."""
    Path("experiment.toml").write_text(EXPERIMENT)
    assert command("run", "experiment.toml", "--jobs", 1, "--device", "cpu")[0] == 0
    Path("work").rename("alone")
    run = ("run", "experiment.toml", "--ray", cluster, "--device", "cpu")
    err = with_a_killed_worker(command, "work/models/.*/*/training.safetensors", *run)
    assert results(Path("work")) == results(Path("alone"))
    assert "train forward: epoch 6" in err


@pytest.mark.usefixtures("one_thread")
def test_train_on_a_cluster_equals_a_local_training(command: Command, folder: Path, cluster: str) -> None:
    sizes = TINY.replace("epochs = 6", "epochs = 1").replace(" ", "").split(",")
    files = ("--source", "train.de", "--target", "train.en", "--dev-source", "dev.de", "--dev-target", "dev.en")
    train = ("train", "--preset", "rnnsearch", "--seeds", 2, *files, "--device", "cpu", "--set", *sizes)
    assert command(*train, "--jobs", 1, "--output", "alone")[0] == 0
    assert command(*train, "--ray", cluster, "--output", "many")[0] == 0
    assert results(Path("many")) == results(Path("alone"))
    status, _, err = command(*train, "--ray", cluster, "--output", "many")
    assert status == 2
    assert "the folder is not empty" in err.splitlines()[-1]


@pytest.mark.usefixtures("one_thread", "folder")
def test_study_with_a_killed_worker_equals_a_local_study(command: Command, cluster: str) -> None:
    """The study has no models. Training on a cluster is tested above."""
    files, tuning = EXPERIMENT.partition("[models]")[0], EXPERIMENT.partition("[tuning]")[2]
    Path("study.toml").write_text(f'{files}[features]\nLen = "length"\n\n[tuning]{tuning}\n[study]\nseeds = 2\n')
    assert command("study", "study.toml", "--jobs", 1)[0] == 0
    Path("work").rename("alone")
    with_a_killed_worker(command, "work/*/seed-*/*/dev.nbest.gz", "study", "study.toml", "--ray", cluster)
    made, expected = results(Path("work")), results(Path("alone"))
    assert made == expected
    assert any(name.endswith("weights.ini") for name in made) and "study.json" in made
