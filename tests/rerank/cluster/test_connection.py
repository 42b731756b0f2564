"""Which cluster is meant, without any: Ray itself is not started."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ray = pytest.importorskip("ray")
from moses_io.files.errors import InputError  # noqa: E402
from rerank.cluster import connection  # noqa: E402


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], str]:
    """Return the address that Ray is asked for; `ray start` was never called on this machine."""
    addresses: list[str] = []

    def init(address: str, **_: Any) -> SimpleNamespace:
        addresses.append(address)
        return SimpleNamespace(address_info={"session_dir": str(tmp_path / "session")})

    def connect(address: str) -> str:
        connection._connect(address)
        return addresses.pop()

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    return connect


@pytest.fixture
def started(asked: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """The address of what `ray start` has made on this machine, as Ray writes it down."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text(f"{address}\n")
        yield address


@pytest.mark.parametrize("value", ["", "auto", "local"])
def test_a_cluster_of_its_own_where_none_runs(
    asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", value)
    assert asked("auto") == "local"


@pytest.mark.parametrize("value", ["", "auto"])
def test_the_cluster_of_this_machine(
    asked: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", value)
    assert asked("auto") == started


def test_a_cluster_of_its_own_where_the_environment_says_local(
    asked: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert asked("auto") == "local"


def test_the_cluster_that_the_environment_names(
    asked: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ray" / "ray_current_cluster").unlink()
    monkeypatch.setenv("RAY_ADDRESS", started)
    assert asked("auto") == started


def test_what_is_named_goes_before_the_environment(
    asked: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert asked(started) == started


def test_a_cluster_of_the_environment_that_does_not_answer(
    asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "localhost:1")
    expected = "--ray 'auto': no cluster answers at 'localhost:1', which RAY_ADDRESS names. Expected HOST:PORT, or auto"
    with pytest.raises(InputError, match=f"^{expected}$"):
        asked("auto")
