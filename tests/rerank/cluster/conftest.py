import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a Ray cluster with two cores, in separate processes.

    They ignore SIGINT, like background processes of a script.
    """
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(Path(__file__).parents[3])}
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    machine = {"num_cpus": 2, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    machines = cluster_utils.Cluster(initialize_head=True, head_node_args=machine)
    signal.signal(signal.SIGINT, interrupt)
    yield machines.address
    machines.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use one thread in this process, like the workers, so that sums are bitwise equal."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with texts and lists of forty sentences."""
    monkeypatch.chdir(small())
    return Path.cwd()
