"""Choice of the cluster address, tested without starting Ray."""

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
def requested_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], str]:
    """Return a function that returns the address passed to Ray. There is no cluster of `ray start` on this machine."""
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
def started(requested_address: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """The address of a simulated cluster of `ray start`, in the file in which Ray stores it."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text(f"{address}\n")
        yield address


@pytest.mark.parametrize("value", ["", "auto", "local"])
def test_auto_starts_a_local_cluster_if_none_runs(
    requested_address: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", value)
    assert requested_address("auto") == "local"


@pytest.mark.parametrize("value", ["", "auto"])
def test_auto_uses_the_cluster_of_this_machine(
    requested_address: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", value)
    assert requested_address("auto") == started


def test_the_environment_variable_can_request_a_local_cluster(
    requested_address: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert requested_address("auto") == "local"


def test_the_environment_variable_can_give_an_address(
    requested_address: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ray" / "ray_current_cluster").unlink()
    monkeypatch.setenv("RAY_ADDRESS", started)
    assert requested_address("auto") == started


def test_the_option_overrides_the_environment_variable(
    requested_address: Callable[[str], str], started: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert requested_address(started) == started


def test_an_unreachable_cluster_of_the_environment_is_an_error(
    requested_address: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "localhost:1")
    expected = "--ray 'auto': no cluster answers at 'localhost:1', which RAY_ADDRESS names. Expected HOST:PORT, or auto"
    with pytest.raises(InputError, match=f"^{expected}$"):
        requested_address("auto")
