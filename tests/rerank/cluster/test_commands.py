"""Errors of `--ray` without a running cluster."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]


def test_a_missing_ray_package_is_an_error(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rerank.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    score = ("score", "dev.nbest", "--source", "dev.de", "--feature", "length", "--ray", "auto")
    assert command(*score) == (
        2, b"", "moses-rerank score: --ray needs the package ray: pip install 'moses-rerank[ray]'\n",
    )  # fmt: skip


@pytest.mark.parametrize("address", ["nowhere", "localhost:1", "localhost:x", ":1", "ray://localhost:1"])
def test_an_address_without_a_cluster_is_an_error(command: Command, folder: Path, address: str) -> None:
    pytest.importorskip("ray")
    score = ("score", "dev.nbest", "--source", "dev.de", "--feature", "length", "--ray", address)
    expected = f"--ray '{address}': no cluster answers at '{address}'. Expected HOST:PORT, or auto"
    assert command(*score) == (2, b"", f"moses-rerank score: {expected}\n")


@pytest.mark.parametrize("line", ["score dev.nbest --source dev.de --feature length", "run e.toml", "study s.toml"])
def test_a_cache_with_ray_is_an_error(command: Command, line: str) -> None:
    name, *arguments = line.split(" ")
    message = (
        f"moses-rerank {name}: --cache cannot be combined with --ray: its file is for the processes of one machine\n"
    )
    assert command(name, *arguments, "--ray", "auto", "--cache", "cache") == (2, b"", message)
