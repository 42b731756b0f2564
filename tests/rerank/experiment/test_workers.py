import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import active_children
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from features.progress import Done, log, progress_bar
from moses_io.files.errors import InputError
from moses_io.files.streams import open_output
from rerank.experiment.workers import Workers, _share, cores, do_all, jobs_for

Until = Callable[[Callable[[], bool]], None]


def meet(mine: Path, other: Path) -> None:
    """Return when another process runs at the same time, or fail after a minute."""
    mine.write_text(os.environ["OMP_NUM_THREADS"])
    for _ in range(600):
        if other.exists():
            log.info("met")
            return
        time.sleep(0.1)
    raise InputError("nobody came")


def log_variable(name: str) -> None:
    log.info(repr(os.environ.get(name)))


def fail(reason: str) -> None:
    if not reason:
        raise ValueError("a fault of ours")
    raise InputError(reason)


def fill() -> None:
    raise OSError(28, "No space left on device", "/dev/full")


def linger(folder: Path) -> None:
    """Write for a long time to a file that appears only when it is complete."""
    with open_output(str(folder / "whole")):
        (folder / "begun").write_text(str(os.getpid()))
        time.sleep(60)


class SlowToLoad:
    """An action that takes a while to unpickle, like one that imports a large library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Path]) -> None:
        self.__dict__.update(state)
        (self.folder / "begun").write_text(str(os.getpid()))
        time.sleep(1)

    def __call__(self) -> None:
        log_variable("HOME")


def lingering(folder: Path) -> int:
    """Wait until `linger` or `SlowToLoad` has started, and return its process id."""
    for _ in range(1200):
        if (folder / "begun").exists() and (folder / "begun").read_text():
            break
        time.sleep(0.05)
    return int((folder / "begun").read_text())


@pytest.mark.usefixtures("progress")
def test_two_processes_run_at_a_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one, two = tmp_path / "one", tmp_path / "two"
    do_all({"first": partial(meet, one, two), "second": partial(meet, two, one), "third": partial(meet, one, two)}, 2)
    err = capfd.readouterr().err
    assert sorted(err.splitlines()) == ["first: met", "second: met", "third: met"]
    assert one.read_text() == "1"


@pytest.mark.usefixtures("progress")
@pytest.mark.parametrize("before", [None, "1"])
def test_a_worker_has_the_original_environment(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, before: "str | None"
) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    do_all({"a": partial(log_variable, "PYTHONSAFEPATH")}, 2)
    assert (capfd.readouterr().err, os.environ.get("PYTHONSAFEPATH")) == (f"a: {before!r}\n", before)


@pytest.mark.usefixtures("progress")
def test_one_job_runs_in_this_process(capfd: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    do_all({"a": lambda: done.append(1), "b": lambda: done.append(2)}, 1)
    assert (done, capfd.readouterr().err) == ([1, 2], "a\nb\n")


def test_a_failure_ends_the_other_processes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], until: Until, is_running: Callable[[str], bool]
) -> None:
    with Workers(2) as workers, pytest.raises(InputError, match=r"^bad: no such thing$"):
        workers.start("long", partial(linger, tmp_path))
        process = lingering(tmp_path)
        workers.start("bad", partial(fail, "no such thing"))
        workers.wait()
    until(lambda: not is_running(str(process)))
    assert [path.name for path in tmp_path.iterdir()] == ["begun"]
    with pytest.raises(InputError, match=r"^long: x{10000}$"):
        do_all({"long": partial(fail, "x" * 200_000)}, 2)
    with pytest.raises(InputError, match=r"^large: out of memory$"):
        do_all({"large": partial(bytearray, 2**62)}, 2)
    with pytest.raises(InputError, match=r"^broken: ended with status 1$"):
        do_all({"broken": partial(fail, "")}, 2)
    with pytest.raises(InputError, match=r"^killed: killed by signal 9, often for lack of memory\. Use fewer --jobs$"):
        do_all({"killed": partial(signal.raise_signal, signal.SIGKILL)}, 2)
    assert "a fault of ours" in capfd.readouterr().err
    with pytest.raises(InputError, match=r"^full: /dev/full: No space left on device$"):
        do_all({"full": fill}, 2)


def test_success_is_reported_before_failure(tmp_path: Path) -> None:
    with Workers(2) as workers:
        workers.start("bad", partial(fail, "no such thing"))
        workers.start("good", os.getpid)
        for each in workers._running.values():
            each.process.join()
        assert workers.wait() == "good"
        with pytest.raises(InputError, match="no such thing"):
            workers.wait()


def advance(fractions: list[float]) -> None:
    with progress_bar("work", 100, whole=True) as bar:
        for fraction in fractions:
            time.sleep(1.1)
            bar.advance(round(100 * fraction), "")
    raise InputError("failed")


def test_progress_of_a_process_is_reported_before_its_error() -> None:
    reports: list[tuple[str, Done | None]] = []
    with Workers(1, lambda *report: reports.append(report)) as workers, pytest.raises(InputError, match="one: failed"):
        workers.start("one", partial(advance, [0.25, 0.5]))
        workers.wait()
    assert reports == [("one", Done(0.0)), ("one", Done(0.25)), ("one", Done(0.75))]


def test_a_worker_ignores_interrupts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Workers(1) as pool:
        pool.start("slow", SlowToLoad(tmp_path))
        os.kill(lingering(tmp_path), signal.SIGINT)
        assert pool.wait() == "slow"
    assert "Traceback" not in capfd.readouterr().err


def test_an_interrupt_during_the_start_of_a_process_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = SpawnProcess.start

    def interrupted(process: SpawnProcess) -> None:
        start(process)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), Workers(1) as pool:
        pool.start("long", partial(linger, tmp_path))
    assert not active_children()


def test_workers_end_when_the_parent_is_killed(tmp_path: Path, until: Until, is_running: Callable[[str], bool]) -> None:
    code = (
        "from functools import partial; from pathlib import Path; from rerank.experiment.workers import do_all\n"
        "from tests.rerank.experiment.test_workers import linger\n"
        f"if __name__ == '__main__': do_all({{'a': partial(linger, Path({str(tmp_path)!r}))}}, 2)"
    )
    (tmp_path / "main.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, str(tmp_path / "main.py")], env=environment) as parent:
        process = lingering(tmp_path)
        parent.kill()
    until(lambda: not is_running(str(process)))


def test_shares_of_cores_and_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("rerank.experiment.workers.cores", lambda: 6)
    monkeypatch.setattr("rerank.experiment.workers.GPUS", tmp_path)
    assert _share(1, 4) == {"OMP_NUM_THREADS": "1"}
    for name in ("0000:01", "0000:02"):
        (tmp_path / name).mkdir()
    assert [_share(slot, 3)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["0", "1", "0"]
    assert _share(0, 3)["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert _share(1, 2)["CUDA_VISIBLE_DEVICES"] == "7"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" not in _share(0, 2)


@pytest.mark.parametrize(
    ("limit", "threads"),
    [("1", ["1", "1"]), ("4", ["4", "3"]), ("16", ["6", "3"]), ("0", ["6", "3"]), ("4,2", ["6", "3"])],
)
def test_omp_num_threads_is_a_maximum(monkeypatch: pytest.MonkeyPatch, limit: str, threads: list[str]) -> None:
    """With one or two processes on six cores."""
    monkeypatch.setattr("rerank.experiment.workers.cores", lambda: 6)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert [_share(0, jobs)["OMP_NUM_THREADS"] for jobs in (1, 2)] == threads


def test_cores_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert cores() == 1


def test_default_number_of_parallel_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.experiment.workers.cores", lambda: 4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [jobs_for(models, "auto") for models in (0, 1, 3, 9)] == [1, 1, 3, 4]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert [jobs_for(9, device) for device in ("auto", "cuda", "cpu")] == [2, 2, 4]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert jobs_for(9, "auto") == 4
