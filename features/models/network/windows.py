"""Windows: scores to weights, over all positions or those around one. Scores are (B, S), or (B, S, K) where fine."""

import torch
from torch import Tensor, nn

from features.models.network.source import Source
from features.models.settings import Architecture


class Global(nn.Module):
    """All positions."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores, which sum to 1 over S."""
        return _softmax(scores, source.bias)


class LocalMonotonic(nn.Module):
    """local-m: positions within D of p_j = min(j, I) (Luong et al. 2015, 3.2, and Luong's code for j > I)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.reach = architecture.reach

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores, which sum to 1 over S; `step` (B, 1) is j."""
        distance = _positions(source) - torch.minimum(step, source.source_length)  # (B, S)
        return _softmax(scores, _within(source, distance, self.reach))


class LocalPredictive(nn.Module):
    """local-p: positions within D of p_j = I · sigmoid(v' tanh(W q)), weighted by a Gaussian (Luong eq. 9-10).

    The deviation is D / 2. The weights are not renormalized, as in the paper, and sum below 1.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.reach = architecture.reach
        self.hidden = nn.Linear(architecture.hidden, architecture.attention, bias=False)
        self.out = nn.Linear(architecture.attention, 1, bias=False)

    def forward(self, scores: Tensor, query: Tensor, step: Tensor, source: Source) -> Tensor:
        """Weights like the scores."""
        centre = source.source_length * torch.sigmoid(self.out(torch.tanh(self.hidden(query))))  # (B, 1)
        distance = _positions(source) - centre  # (B, S)
        weights = _softmax(scores, _within(source, distance.detach(), self.reach))
        return weights * _like(torch.exp(-distance.square() / (2 * (self.reach / 2) ** 2)), scores)


def _positions(source: Source) -> Tensor:
    return torch.arange(source.bias.shape[1], device=source.bias.device, dtype=source.source_length.dtype)  # (S,)


def _within(source: Source, distance: Tensor, reach: int) -> Tensor:
    return source.bias.masked_fill(distance.abs() > reach, float("-inf"))


def _softmax(scores: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(scores + _like(bias, scores), dim=1)  # (B, S) or (B, S, K)


def _like(values: Tensor, scores: Tensor) -> Tensor:
    """Give (B, S) values the axis K if the scores have it."""
    return values if scores.dim() == 2 else values.unsqueeze(-1)  # (B, S) or (B, S, 1)
