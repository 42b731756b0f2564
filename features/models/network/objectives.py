"""What training adds to the log-likelihood: functions of the attention of whole sentences, higher is better.

Rows of attention are (J, B, S), 0 where a target is padding; J counts `</s>`.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.source import Source
from features.models.settings import Architecture

SMALLEST_VARIANCE = 0.1
"""A density can exceed 1, so that a variance without floor would be rewarded for going to 0."""

SMALLEST_ATTENTION = 1e-6


class GlobalFertility(nn.Module):
    """sum_i log N(f_i; mu(e_i), sigma²(e_i)), f_i = sum_j alpha[j, i], over source words (Cohn et al. 2016, 3.3).

    One tanh layer of size H, as Cohn's table 2 counts it, feeds mu and sigma², a softplus makes each positive.
    Sentinels are left out, so that weight can go there.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        size = architecture.fertility or architecture.hidden
        self.hidden = nn.Linear(architecture.annotation, size)
        self.out = nn.Linear(size, 2)

    def forward(self, source: Source, rows: Tensor) -> Tensor:
        """(B,) log-density of each sentence's fertilities, in nats."""
        annotations = source.states[..., : self.hidden.in_features]  # (B, S, K); behind them a transformer has others
        return log_density(rows.sum(dim=0), *self.expected(annotations), source.source_mask)  # rows (B, S)

    def expected(self, annotations: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S) mean and variance of the fertility of words with annotations (B, S, K)."""
        mean, variance = functional.softplus(self.out(torch.tanh(self.hidden(annotations)))).unbind(-1)  # (B, S) both
        return mean, variance + SMALLEST_VARIANCE


def log_density(fertility: Tensor, mean: Tensor, variance: Tensor, source_mask: Tensor) -> Tensor:
    """(B,) sum of log N(fertility; mean, variance) over the words, where `source_mask` is true; all are (B, S)."""
    error = (fertility - mean).square() / variance
    return -0.5 * ((error + torch.log(2 * math.pi * variance)) * source_mask).sum(dim=1)  # (B,)


class Coverage(nn.Module):
    """-sum_i (1 - sum_j alpha[j, i])² over source words (Xu et al. 2015), the simpler way that Cohn 3.3 names."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()

    def forward(self, source: Source, rows: Tensor) -> Tensor:
        """(B,)."""
        return -((1 - rows.sum(dim=0)).square() * source.source_mask).sum(dim=1)  # (B,)


def guidance(rows: Tensor, places: Tensor, shares: Tensor) -> Tensor:
    """Cross-entropy of attention with the links of target words: -sum_j 1/|L_j| sum_{i in L_j} log alpha[j, i].

    Guided alignment of Chen et al. 2016 (eq. 4). Here it is a sum over target tokens, as -log p is, not their mean;
    tokens without links are left out, and attention counts as `SMALLEST_ATTENTION` at least, since windows may never
    come to a link.

    Args:
        rows: (J, B, S) attention; where fine, its mean over the dimensions.
        places: (3, L) row, sentence and position of each link.
        shares: (L,) one by the number of links of the same target token.

    Returns:
        () in nats.
    """
    return -(shares * rows[places.unbind(0)].clamp(min=SMALLEST_ATTENTION).log()).sum()


def trace(forward: Tensor, backward: Tensor) -> Tensor:
    """Agreement of both directions: tr(A_{s→t} A_{t→s}) (Cohn et al. 2016, 3.4).

    Args:
        forward: (J, B, I+1) rows of the model source → target; J counts the target's `</s>`, I+1 all positions.
        backward: (I, B, J+1) rows of the model target → source of the same pairs, I counts the source's `</s>`.

    Returns:
        (B,) sum_ij forward[j, i] · backward[i, j], the columns of `<s>` left out; at most min(I, J), `</s>` counted.
    """
    return torch.einsum("jbi,ibj->b", forward[:, :, 1:], backward[:, :, 1:])  # (B,)
