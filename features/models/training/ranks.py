"""The processes that train one model together, as torchrun starts them; one alone has nothing to exchange.

Each passes its share of the rows of every batch. Their gradients are added up in one exchange of all of them, after the
last backward pass of an update, and each process then takes the same step. An update divides by the sentences or tokens
of the whole batch before it goes back, so that the sum is the gradient of one process. DistributedDataParallel takes
the mean, wants all forward passes of a network to go through its wrapper with as many on each process, and sees one
network at a time: here shares may be empty, batches accumulate, and two networks stand in one graph. What it would gain
is to exchange while the backward pass still goes on; docs/lab/speed.md has what the exchange costs.

The process of rank 0 leads: it begins the training and writes all that is written. The others go on from its
checkpoint, so that the folder must be one that all see.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from features.models.device import on_device
from features.progress import silenced
from moses_io.files.errors import InputError

CPU = torch.device("cpu")
WAIT = timedelta(hours=6)
"""How long the others wait for what one does alone: vocabularies and tables of a large corpus."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Ranks:
    """A process among those that train together. All of them call the same methods in the same order.

    Raises:
        InputError: from all methods that exchange something, another process has ended.
    """

    device: torch.device = CPU  # where this process trains
    rank: int = 0
    size: int = 1  # processes

    @property
    def leads(self) -> bool:
        """Whether this process writes and tells."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return every n-th of some items for n processes: what stands in order of length is shared evenly."""
        return items[self.rank :: self.size]

    def add_gradients(self, weights: Sequence[nn.Parameter], losses: list[Tensor]) -> list[Tensor]:
        """Put into all weights the sum of the gradients of all processes; a weight without one here counts 0.

        Args:
            weights: the same ones in all processes.
            losses: () each, of this process; none if its share is empty.

        Returns:
            () each, the losses of all processes together: alone the same ones, else their sum.
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

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of the numbers of all processes, which have as many."""
        if self.size == 1:
            return list(numbers)
        sums = on_device(numbers, self.device, torch.float64)  # (N,)
        with self._exchange():
            dist.all_reduce(sums)
        return sums.tolist()

    def from_first(self, make: Callable[[], Item]) -> Item:
        """Return what the process of rank 0 makes, sent to the others; they make nothing."""
        if self.size == 1:
            return make()
        items = [make() if self.leads else None]
        with self._exchange():
            dist.broadcast_object_list(items, 0, device=self.device)
        return cast("Item", items[0])

    def meet(self) -> None:
        """Wait until all processes have come here."""
        if self.size > 1:
            with self._exchange():
                dist.barrier()

    def gather(self, state: Tensor) -> list[Tensor]:
        """Return tensors (N,) of all processes in their order, of one size and type."""
        if self.size == 1:
            return [state]
        own = state.to(self.device)
        states = [torch.empty_like(own) for _ in range(self.size)]
        with self._exchange():
            dist.all_gather(states, own)
        return [each.cpu() for each in states]

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError:
            raise InputError(f"another of the {self.size} processes has ended; go on with --resume") from None


ALONE = Ranks()
"""A process that trains by itself."""


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes that torchrun started while the block runs; all but the one of rank 0 tell nothing.

    On GPUs each process has the one of its number on this machine. A program that has joined them already stays joined,
    and can train several models one after the other.

    Raises:
        InputError: fewer GPUs than processes, or the processes do not find each other.
    """
    if device.type == "cuda":
        device = _own_gpu()
    stays = dist.is_initialized()
    if not stays:
        try:
            _meet(device)
        except RuntimeError as error:
            raise InputError(f"the processes do not find each other: {str(error).splitlines()[0]}") from None
    ranks = Ranks(device, rank=dist.get_rank(), size=dist.get_world_size())
    with contextlib.nullcontext() if ranks.leads else silenced():
        yield ranks
    if not stays:
        dist.destroy_process_group()


def _meet(device: torch.device) -> None:
    """Make the group; where torchrun starts all again, its store has the addresses of those that have ended."""
    store, rank, size = next(dist.rendezvous("env://", timeout=WAIT))  # type: ignore[attr-defined]
    attempt = dist.PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)  # type: ignore[attr-defined]
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=attempt, rank=rank, world_size=size, timeout=WAIT)


def _own_gpu() -> torch.device:
    number, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= gpus:
        processes = os.environ["LOCAL_WORLD_SIZE"]
        raise InputError(
            f"torchrun started {processes} processes here, torch sees {gpus} GPU; take --device cpu, or as many"
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)
