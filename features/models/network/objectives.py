"""Training objectives on the attention of whole sentences.

`GlobalFertility`, `Coverage` and `trace` are added to the log-likelihood, so higher is better. `guided_alignment_loss`
is a loss. Rows of attention are (J, B, S), 0 if a target is padding. J counts `</s>`.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.source import Source
from features.models.settings import Architecture

MIN_VARIANCE = 0.1
"""Lower bound of the variance. A density can exceed 1, so without the bound a variance near 0 would be rewarded."""

MIN_ATTENTION = 1e-6


class GlobalFertility(nn.Module):
    """Global fertility: sum_i log N(f_i; mu(e_i), sigma²(e_i)), f_i = sum_j alpha[j, i] (Cohn et al. 2016, 3.3).

    The sum is over source words. One tanh layer feeds mu and sigma², and a softplus makes each positive. The layer's
    default size is H, which matches table 2 of the paper. `<s>` and `</s>` are left out, so that attention can go
    there.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        size = architecture.fertility_size or architecture.hidden_size
        self.hidden = nn.Linear(architecture.annotation, size)
        self.out = nn.Linear(size, 2)

    def forward(self, source: Source, rows: Tensor) -> Tensor:
        """Return the log-density (B,) of each sentence's fertilities, in nats."""
        annotations = source.states[..., : self.hidden.in_features]  # (B, S, K); a transformer appends keys and values
        return log_density(rows.sum(dim=0), *self.expected(annotations), source.source_mask)  # rows (B, S)

    def expected(self, annotations: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance (B, S) of the fertility of words with annotations (B, S, K)."""
        mean, variance = functional.softplus(self.out(torch.tanh(self.hidden(annotations)))).unbind(-1)  # (B, S) both
        return mean, variance + MIN_VARIANCE


def log_density(fertility: Tensor, mean: Tensor, variance: Tensor, source_mask: Tensor) -> Tensor:
    """Return the sum (B,) of log N(fertility; mean, variance) over words, in nats. All arguments are (B, S)."""
    error = (fertility - mean).square() / variance
    return -0.5 * ((error + torch.log(2 * math.pi * variance)) * source_mask).sum(dim=1)  # (B,)


class Coverage(nn.Module):
    """Coverage penalty -sum_i (1 - sum_j alpha[j, i])² over source words (Xu et al. 2015).

    It is the value `deviation` of the feature `neural`, not its value `coverage` (Wu et al. 2016).

    Cohn et al. 2016 (3.3) name it as the simpler alternative to global fertility.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()

    def forward(self, source: Source, rows: Tensor) -> Tensor:
        """Return the penalty (B,) of each sentence."""
        return -((1 - rows.sum(dim=0)).square() * source.source_mask).sum(dim=1)  # (B,)


def guided_alignment_loss(rows: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
    """Return the guided alignment loss -sum_j 1/|L_j| sum_{i in L_j} log alpha[j, i].

    This is the cross-entropy of attention with the links L_j of each target token j (Chen et al. 2016, eq. 4). The
    paper takes the mean over target tokens. Here it is the sum, like -log p. Tokens without links are left out.
    Attention below `MIN_ATTENTION` is raised to it, since a window may exclude a linked position.

    Args:
        rows: (J, B, S) attention, or with granularity `fine` its mean over the dimensions.
        indices: (3, L) row, sentence and source position of each link.
        weights: (L,) 1 / number of links of the same target token.

    Returns:
        () in nats.
    """
    return -(weights * rows[indices.unbind(0)].clamp(min=MIN_ATTENTION).log()).sum()  # (L,) → ()


def trace(forward: Tensor, backward: Tensor) -> Tensor:
    """Return the agreement of both directions, tr(A_{s→t} A_{t→s}) (Cohn et al. 2016, 3.4).

    Args:
        forward: (J, B, I+1) attention of the source → target model. J counts the target's `</s>`, I+1 all source
            positions.
        backward: (I, B, J+1) attention of the target → source model for the same pairs. I counts the source's `</s>`.

    Returns:
        (B,) sum_ij forward[j, i] · backward[i, j] without the columns of `<s>`. At most min(I, J), which count `</s>`.
    """
    return torch.einsum("jbi,ibj->b", forward[:, :, 1:], backward[:, :, 1:])  # (B,)
