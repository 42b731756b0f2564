"""Optimizers, and schedules of the step size as a share of the first: `epoch` counts from 1, `progress` goes to 1."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from features.models.settings import Training
from features.models.tables import find

TensorKinds = dict[str, tuple[torch.Size, torch.dtype]]
"""Shapes and types of tensors by their names."""


def state_kinds(settings: Training, weight: Tensor) -> TensorKinds:
    """Return names, shapes and types of the optimizer state of a weight, found by one step on a small tensor.

    A state tensor with the shape of the small tensor has the shape of the weight; others keep their own shape.
    """
    probe = nn.Parameter(torch.zeros(2))
    probe.grad = torch.zeros(2)
    optimizer: torch.optim.Optimizer = find("optimizer", settings.optimizer)([probe], lr=settings.rate)
    optimizer.step()
    state = optimizer.state[probe].items()
    return {name: (weight.shape if own.shape == probe.shape else own.shape, own.dtype) for name, own in state}


def adam(weights: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015) in torch's fused kernel."""
    return torch.optim.Adam(weights, lr=lr, fused=True)


def step_size(settings: Training, epoch: int, updates: int, planned: int) -> float:
    """Return the step size after `updates` of `planned` updates, by the schedule, and below it during the warmup.

    The first of w updates of the warmup is 1/w of what the schedule says, the last all of it (Vaswani et al. 2017).
    """
    risen = min(1.0, (updates + 1) / settings.warmup) if settings.warmup else 1.0
    share: float = find("schedule", settings.schedule)(settings, epoch, updates / planned)
    return settings.rate * share * risen


def linear(settings: Training, epoch: int, progress: float) -> float:
    """Fall to a tenth over the planned updates."""
    return 1 - 0.9 * min(progress, 1.0)


def constant(settings: Training, epoch: int, progress: float) -> float:
    """Stay."""
    return 1.0


def halving(settings: Training, epoch: int, progress: float) -> float:
    """Halve after `hold` epochs, and again every `every` epochs (Luong et al. 2015; Yang et al. 2017)."""
    return float(0.5 ** max(0, math.ceil((epoch - settings.hold) / settings.every)))
