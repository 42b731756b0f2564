"""Encoders: source words to annotations."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.settings import Architecture


class Annotations(NamedTuple):
    """What an encoder makes of a batch of source sentences.

    Attributes:
        states: (B, S, 2H) annotation of every position, sentinels included; 0 on padding.
        first: (B, H) what the decoder's first state is made of.
    """

    states: Tensor
    first: Tensor


class BidirectionalEncoder(nn.Module):
    """Two LSTMs, one in each direction: e_i = [forward_i; backward_i] (Bahdanau et al. 2015).

    The backward LSTM reads each sentence reversed within its own length, so that padding comes last for both and
    changes nothing.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.forwards = nn.LSTM(architecture.embedding, architecture.hidden, batch_first=True)
        self.backwards = nn.LSTM(architecture.embedding, architecture.hidden, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, mask: Tensor) -> Annotations:
        """Encode word vectors (B, S, E), of which those where `mask` (B, S) is true are real."""
        embedded = self.dropout(embedded)
        order = _reversal(mask)
        forwards, _ = self.forwards(embedded)
        backwards, _ = self.backwards(_take(embedded, order))
        backwards = _take(backwards, order)
        states = torch.cat([forwards, backwards], dim=-1) * mask.unsqueeze(-1)  # (B, S, 2H)
        return Annotations(states, backwards[:, 0])


def _reversal(mask: Tensor) -> Tensor:
    """(B, S) positions that reverse each sentence and leave its padding in place."""
    positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    lengths = mask.sum(dim=1, keepdim=True)
    return torch.where(mask, lengths - 1 - positions, positions)


def _take(values: Tensor, order: Tensor) -> Tensor:
    return values.gather(1, order.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


ENCODERS = {"bidirectional": BidirectionalEncoder}
