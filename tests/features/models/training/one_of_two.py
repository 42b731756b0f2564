"""Program that torchrun starts for test_ranks.py: train the models of a file, or run `train` and disturb it."""

import json
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import torch.distributed as dist

from features.models.config import METRICS
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.text import ParallelFiles
from rerank.cli import main


def train_all(folder: Path) -> None:
    """Train the models of `trainings.json` one after the other in one process group."""
    dist.init_process_group("gloo")
    for name, (preset, settings, alignment) in json.loads((folder / "trainings.json").read_text()).items():
        files = TrainingFiles(
            corpus=ParallelFiles(str(folder / "source"), str(folder / "target"), alignment=alignment),
            dev=ParallelFiles(str(folder / "dev.source"), str(folder / "dev.target")),
        )
        train_model(TrainingRequest(preset, settings=settings), files, str(folder / name), "cpu", together=True)
    dist.destroy_process_group()


def train_in_little_memory(megabytes: int, arguments: list[str]) -> int:
    """Run `moses-rerank` with a limit of additional memory for the process of rank 1."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        data = int(Path("/proc/self/statm").read_text().split(" ")[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (data + megabytes * 2**20, resource.RLIM_INFINITY))
    return main(arguments)


def train_until_killed(folder: Path, arguments: list[str]) -> int:
    """Run `moses-rerank`. Rank 1 is killed after an epoch of the first start, and rank 0 after one of the second."""
    if int(os.environ["RANK"]) == 1 - int(os.environ["TORCHELASTIC_RESTART_COUNT"]):
        threading.Thread(target=end_after_an_epoch, args=(folder / METRICS,), daemon=True).start()
    return main(arguments)


def end_after_an_epoch(metrics: Path) -> None:
    """Kill this process as soon as the file of metrics has one more row."""
    before = rows(metrics)
    while rows(metrics) == before:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


def rows(metrics: Path) -> int:
    return metrics.read_text().count("\n") if metrics.exists() else 0


if __name__ == "__main__":
    if sys.argv[1] == "trainings":
        train_all(Path(sys.argv[2]))
    elif sys.argv[1] == "killed":
        sys.exit(train_until_killed(Path(sys.argv[2]), sys.argv[3:]))
    else:
        sys.exit(train_in_little_memory(int(sys.argv[1]), sys.argv[2:]))
