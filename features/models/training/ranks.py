"""Processes that train one model together, started by torchrun. A single process exchanges nothing.

Each process computes its share of the rows of every batch. After the last backward pass of an update, the gradients of
all processes are added up in one exchange, and each process takes the same optimizer step. Losses are divided by the
number of sentences or tokens of the whole batch before the backward pass, so the sum equals the gradient of a single
process.

DistributedDataParallel is not used: it averages gradients, requires equally many forward passes in each process, all
through its wrapper, and handles one network at a time. Here shares may be empty, batches are accumulated, and two
networks can be in one graph. Its advantage would be to exchange gradients during the backward pass.
docs/lab/speed.md has the cost of the exchange.

The process of rank 0 begins the training and writes all files. The other processes start from its checkpoint,
so all processes need access to the folder.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from features.models.device import on_device
from features.progress import silenced
from moses_io.files.errors import InputError

CPU = torch.device("cpu")
WAIT = timedelta(hours=6)
"""Time limit for waiting while one process works alone, for example on the vocabularies of a large corpus."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Ranks:
    """One of the processes that train together. All processes call the same methods in the same order.

    Raises:
        InputError: another process has ended. Raised by all methods that exchange values.
    """

    device: torch.device = CPU  # where this process trains
    rank: int = 0  # index of this process
    size: int = 1  # number of processes

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return every n-th item, for n processes, so that items in order of length are shared evenly."""
        return items[self.rank :: self.size]

    def add_gradients(self, weights: Sequence[nn.Parameter], losses: list[Tensor]) -> list[Tensor]:
        """Replace the gradient of each weight by its sum over all processes. A missing gradient counts as 0.

        Args:
            weights: the same weights in all processes.
            losses: () each, of this process, empty if its share is empty.

        Returns:
            () each: the losses themselves for a single process, otherwise one value, their sum over all processes.
        """
        if self.size == 1:
            return losses
        loss = torch.stack(losses).sum() if losses else torch.zeros((), device=self.device)  # ()
        gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
        flat = torch.cat([each.flatten() for each in (*gradients, loss)])  # (W + 1,)
        with self._exchange():
            dist.all_reduce(flat)
        *sums, total = torch.split(flat, [*(weight.numel() for weight in weights), 1])  # (w,) each, (1,)
        for weight, gradient in zip(weights, sums, strict=True):
            weight.grad = gradient.view_as(weight)
        return [total.squeeze(0)]

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        """Return values summed over all processes. All processes pass the same number of values."""
        if self.size == 1:
            return list(numbers)
        sums = on_device(numbers, self.device, torch.float64)  # (N,)
        with self._exchange():
            dist.all_reduce(sums)
        return sums.tolist()

    def broadcast(self, item: Item) -> Item:
        """Return the item of the process of rank 0."""
        if self.size == 1:
            return item
        items = [item]
        with self._exchange():
            dist.broadcast_object_list(items, 0, device=self.device)
        return items[0]

    def barrier(self) -> None:
        """Wait until all processes have called this method."""
        if self.size > 1:
            with self._exchange():
                dist.barrier()

    def gather(self, state: Tensor) -> list[Tensor]:
        """Return the tensors (N,) of all processes in order of rank. They have equal sizes and dtypes."""
        if self.size == 1:
            return [state]
        tensor = state.to(self.device)
        states = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._exchange():
            dist.all_gather(states, tensor)
        return [each.cpu() for each in states]

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError:
            raise InputError(f"another of the {self.size} processes has ended. Continue with --resume") from None


ALONE = Ranks()
"""A process that trains alone."""


@contextlib.contextmanager
def join_processes(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes started by torchrun while the block runs. Only rank 0 prints messages.

    On GPUs each process uses the GPU with its local rank. If the program had already joined the processes, it stays
    joined after the block, and can train several models in sequence.

    Raises:
        InputError: there are fewer GPUs than processes, or the processes cannot connect.
    """
    if device.type == "cuda":
        device = _own_gpu()
    stays = dist.is_initialized()
    if not stays:
        try:
            _create_group(device)
        except RuntimeError as error:
            raise InputError(f"the processes cannot connect to each other: {str(error).splitlines()[0]}") from None
    ranks = Ranks(device, rank=dist.get_rank(), size=dist.get_world_size())
    with contextlib.nullcontext() if ranks.is_main else silenced():
        yield ranks
    if not stays:  # not after an error: destroying the group would wait for the other processes
        dist.destroy_process_group()


def _create_group(device: torch.device) -> None:
    """Create the process group.

    When torchrun restarts all processes, its store still has the addresses of the ended ones, so each attempt has a
    prefix.
    """
    store, rank, size = next(dist.rendezvous("env://", timeout=WAIT))  # type: ignore[attr-defined]
    attempt = dist.PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)  # type: ignore[attr-defined]
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=attempt, rank=rank, world_size=size, timeout=WAIT)


def _own_gpu() -> torch.device:
    number, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= gpus:
        processes = os.environ["LOCAL_WORLD_SIZE"]
        raise InputError(
            f"torchrun started {processes} processes here, torch sees {gpus} GPU. "
            "Use --device cpu, or one process per GPU"
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)
