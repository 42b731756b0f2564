import os
import time
from functools import partial
from pathlib import Path

import pytest

from features.progress import note
from moses_io.errors import InputError
from rerank.workers import Workers, _share, do_all


def meet(mine: Path, other: Path) -> None:
    """End only when another process is at work at the same time."""
    mine.write_text(os.environ["OMP_NUM_THREADS"])
    for _ in range(600):
        if other.exists():
            note("met\nindeed")
            return
        time.sleep(0.1)
    raise InputError("nobody came")


def fail(reason: str) -> None:
    if not reason:
        raise ValueError("a fault of ours")
    raise InputError(reason)


def linger(begun: Path, ended: Path) -> None:
    begun.write_text("")
    time.sleep(60)
    ended.write_text("")


def test_two_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one, two = tmp_path / "one", tmp_path / "two"
    do_all({"first": partial(meet, one, two), "second": partial(meet, two, one), "third": partial(meet, one, two)}, 2)
    err = capfd.readouterr().err
    assert sorted(err.splitlines()) == [
        f"{name}: {word}" for name in ("first", "second", "third") for word in ("indeed", "met")
    ]
    assert one.read_text() == "1"


def test_one_at_a_time_is_in_this_process(capfd: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    do_all({"a": lambda: done.append(1), "b": lambda: done.append(2)}, 1)
    assert (done, capfd.readouterr().err) == ([1, 2], "a\nb\n")


def test_what_goes_wrong_ends_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    with Workers(2) as workers, pytest.raises(InputError, match=r"^bad: no such thing$"):
        workers.start("long", partial(linger, begun, ended))
        while not begun.exists():
            time.sleep(0.05)
        workers.start("bad", partial(fail, "no such thing"))
        workers.wait()
    assert not ended.exists()
    with pytest.raises(InputError, match=r"^broken: ended with status 1$"):
        do_all({"broken": partial(fail, "")}, 2)
    assert "a fault of ours" in capfd.readouterr().err


def test_shares_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr("rerank.workers.GPUS", tmp_path)
    assert _share(1, 4) == {"OMP_NUM_THREADS": "1"}
    for name in ("0000:01", "0000:02"):
        (tmp_path / name).mkdir()
    assert [_share(slot, 3)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["0", "1", "0"]
    assert _share(0, 3)["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert _share(1, 2)["CUDA_VISIBLE_DEVICES"] == "7"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" not in _share(0, 2)
