"""What is refused before any cluster is asked."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]


def test_without_the_package_it_is_named(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rerank.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    score = ("score", "dev.nbest", "--source", "dev.de", "--feature", "length", "--ray", "auto")
    assert command(*score) == (
        2, b"", "moses-rerank score: --ray needs the package ray: pip install 'moses-rerank[ray]'\n",
    )  # fmt: skip


@pytest.mark.parametrize("address", ["nowhere", "localhost:1", "localhost:x", ":1", "ray://localhost:1"])
def test_where_no_cluster_answers(command: Command, folder: Path, address: str) -> None:
    pytest.importorskip("ray")
    score = ("score", "dev.nbest", "--source", "dev.de", "--feature", "length", "--ray", address)
    expected = f"--ray '{address}': no cluster answers at '{address}'. Expected HOST:PORT, or auto"
    assert command(*score) == (2, b"", f"moses-rerank score: {expected}\n")


@pytest.mark.parametrize("line", ["score dev.nbest --source dev.de --feature length", "run e.toml", "study s.toml"])
def test_a_cache_is_for_one_machine(command: Command, line: str) -> None:
    name, *arguments = line.split(" ")
    refused = (
        f"moses-rerank {name}: --cache cannot be combined with --ray: its file is for the processes of one machine\n"
    )
    assert command(name, *arguments, "--ray", "auto", "--cache", "cache") == (2, b"", refused)
