"""Schedules: the step size as a share of the first one. `epoch` counts from 1, `progress` runs from 0 to 1."""

import math

from features.models.settings import Training


def linear(settings: Training, epoch: int, progress: float) -> float:
    """Fall to a tenth over the planned updates."""
    return 1 - 0.9 * min(progress, 1.0)


def constant(settings: Training, epoch: int, progress: float) -> float:
    """Stay."""
    return 1.0


def halving(settings: Training, epoch: int, progress: float) -> float:
    """Halve after `hold` epochs, and again every `every` epochs (Luong et al. 2015; Yang et al. 2017)."""
    return 0.5 ** max(0, math.ceil((epoch - settings.hold) / settings.every))
